"""What a stranger complained about, sentence by sentence, and the tests that prove that it is mended.

``test_points.py`` checks that every test of this list exists.
"""

CLI, BROWSER, PIPELINE = "tests/cli", "tests/browser/test_report_in_browser.py", "tests/test_pipeline.py"
HERE, TARGETS, NOTEBOOK = "tests/newcomer/test_afternoon.py", f"{CLI}/test_cli_targets.py", "tests/notebook/test_notebook.py"

#: Sentence, and "file::test" of every proof.
POINTS = [
    # 1
    ("An output that is one of the inputs is refused without --force", f"{HERE}::test_inputs_survive"),
    (
        "So is one that exists and is of another kind",
        f"{CLI}/test_cli_outputs.py::test_files_of_another_kind_are_not_overwritten",
    ),
    # 2
    ("Decimal and thousands marks are decided per file from all cells, and said", f"{HERE}::test_marks_are_decided_and_said"),
    ("They are refused where nothing decides", f"{HERE}::test_marks_that_nothing_decides_are_asked_for"),
    ("They are refused where cells disagree", f"{CLI}/test_cli_reading.py::test_marks_that_disagree_are_refused"),
    ("--decimal, --thousands", f"{CLI}/test_cli_reading.py::test_the_user_decides_about_marks"),
    ("--na-values", f"{CLI}/test_cli_reading.py::test_blanks_and_marks_of_missing_values"),
    ("UTF-16, cp1252 and latin-1 are recognised", f"{HERE}::test_encodings"),
    (
        "Other encodings are refused with --encoding",
        f"{CLI}/test_cli_reading.py::test_other_encodings_are_refused_with_the_option",
    ),
    # 3
    (
        "An output that cannot be written is found before training",
        f"{HERE}::test_a_place_that_cannot_be_written_is_found_first",
    ),
    ("A result that fails at the end is saved elsewhere", f"{HERE}::test_a_result_that_cannot_be_written_is_not_lost"),
    # 4
    ("Rows, columns and memory are said before training", f"{HERE}::test_the_cost_is_said_before_the_training"),
    ("So is the time, from a probe, and what is faster", f"{HERE}::test_a_long_training_is_measured_on_a_few_rows"),
    ("The bar includes the interval phase", f"{HERE}::test_the_bar_counts_the_intervals"),
    ("The report's time table includes it", f"{HERE}::test_from_a_table_to_a_report_in_four_commands"),
    # 5
    ("A loaded model takes the table it was trained on", f"{HERE}::test_the_model_works_in_python"),
    ("Dates included, in any form", f"{TARGETS}::test_dates_work_in_python"),
    ("save takes pipelines and encoders", f"{PIPELINE}::test_pipelines_are_stored"),
    ("to_onnx takes pipelines", f"{PIPELINE}::test_graphs_hold_the_steps"),
    ("Both take searches", f"{PIPELINE}::test_a_search_is_stored_exported_and_reported"),
    ("Both take searches", f"{PIPELINE}::test_a_graph_of_a_search"),
    # 6
    ("Docs, browser and notebook are in .ci/run", "tests/newcomer/test_points.py::test_ci_runs_docs_browser_and_notebook"),
    # 7
    ("A search is one bar and one table", f"{HERE}::test_a_search_is_a_short_table"),
    ("The command line reaches all that the estimator can", f"{HERE}::test_the_command_line_reaches_every_parameter"),
    ("fit --tune", f"{CLI}/test_cli_tuning.py::test_fit_can_tune"),
    # 8
    ("All problems of columns at once, with a command", f"{HERE}::test_all_columns_at_once_and_a_command_that_works"),
    ("Ignored categories are said", f"{CLI}/test_cli_columns.py::test_unknown_categories_that_are_ignored_are_said"),
    ("Dates become features on request", f"{CLI}/test_cli_columns.py::test_dates_become_numbers"),
    ("An id column is kept in predictions", f"{HERE}::test_ids_stay_beside_predictions"),
    ("Near misses", f"{HERE}::test_near_misses"),
    ("Several targets", f"{HERE}::test_several_targets"),
    ("Several targets", f"{TARGETS}::test_several_targets_from_the_table_to_the_report"),
    ("calibrate", f"{HERE}::test_calibration_needs_new_rows"),
    ("Excel in and out", f"{HERE}::test_excel"),
    # 9
    ("Intervals of few rows cover", "tests/long/test_coverage.py::test_intervals_of_few_rows_cover"),
    ("Fewer than 10 rows are refused; no R² of few training rows", f"{HERE}::test_too_few_rows"),
    # 10
    ("calibrate refuses training rows; three rows are told", f"{HERE}::test_calibration_needs_new_rows"),
    # Messages
    ("String and date columns in Python", f"{HERE}::test_columns_in_python_are_named"),
    ("coverage, write_report, gamma, n_jobs, -o x.xlsx, predict data.csv", f"{HERE}::test_messages"),
    ("GramTooLargeError", f"{HERE}::test_too_large_a_matrix_recommends_what_the_estimator_has"),
    ("python -m kstonet.demo --help", f"{HERE}::test_the_demo_has_help"),
    ("KStoNetRegressorCV: history_, save, to_onnx, report", f"{PIPELINE}::test_a_search_is_stored_exported_and_reported"),
    ("predict_interval through a Pipeline", f"{PIPELINE}::test_intervals_are_those_of_the_last_step"),
    ("float32 rows in ONNX", f"{PIPELINE}::test_rows_of_float32"),
    ("Sparse X", f"{PIPELINE}::test_sparse_rows_are_made_dense"),
    ("Sparse X", f"{PIPELINE}::test_sparse_rows_that_do_not_fit_the_memory_are_refused"),
    ("Names that collide", f"{TARGETS}::test_names_that_collide"),
    ("Models of Python without a named target", f"{TARGETS}::test_the_target_of_a_model_of_python_is_named"),
    # The report and the demo
    (
        "The demo: a problem that suits, a picture, the next command",
        f"{HERE}::test_the_demo_ends_in_a_picture_and_the_next_command",
    ),
    ("Readable on a phone, scroll hints", f"{BROWSER}::test_words_are_read_on_a_phone_and_wide_tables_show_that_they_scroll"),
    ("Row ids in the hardest rows", f"{HERE}::test_the_report_names_rows_by_their_ids"),
    ("Values on hover", f"{BROWSER}::test_a_tooltip_answers_the_pointer_and_the_keys"),
    ("A message when a filter matches no column", f"{BROWSER}::test_the_table_filters_by_text_condition_and_switch"),
    ("The time of the intervals, and where intervals are wrong", f"{HERE}::test_from_a_table_to_a_report_in_four_commands"),
    ("_repr_html_ of a fitted model", f"{NOTEBOOK}::test_a_regressor_shows_score_intervals_and_choice"),
    ("Progress in a real kernel", f"{NOTEBOOK}::test_progress_is_one_line_that_moves"),
    ("serve: health, schema", f"{CLI}/test_cli_serve.py::test_health_and_schema"),
    ("serve: predictions with intervals", f"{CLI}/test_cli_serve.py::test_predictions_are_those_of_the_command_line"),
    ("serve: limits", f"{CLI}/test_cli_serve.py::test_bad_requests_are_answered"),
    ("serve: under load", f"{CLI}/test_cli_serve.py::test_many_clients_at_once"),
    ("A Docker file", "tests/newcomer/test_points.py::test_the_docker_file_installs_and_starts_what_exists"),
    # What it must show
    ("From CSV to report in four commands", f"{HERE}::test_from_a_table_to_a_report_in_four_commands"),
    ("In 60 s on two cores", "tests/long/test_four_commands.py::test_from_a_table_to_a_report_in_a_minute"),
]
