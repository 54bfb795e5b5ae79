"""Searches from the command line."""

import json

import kstonet


def test_the_best_of_a_search_is_chosen(run, tmp_path, flats):
    flats.head(40).to_csv(tmp_path / "flats.csv", index=False)
    words = ("tune", tmp_path / "flats.csv", "-t", "price", "--max-iter", 2, "--over", "C")
    found = json.loads(run(*words, "--json", "-o", tmp_path / "m.kstonet").stdout)
    last = max(candidate["iterations"] for candidate in found["candidates"])
    best = min((c for c in found["candidates"] if c["iterations"] == last), key=lambda candidate: candidate["score"])
    assert found["tuned"] == {"C": best["C"]}
    assert json.loads(run("info", tmp_path / "m.kstonet", "--json").stdout)["tuned"] == found["tuned"]
    assert "mean,std,lower_95" in run("predict", tmp_path / "m.kstonet", tmp_path / "flats.csv").stdout
    shown = run(*words)
    assert f"Chosen: {found['tuning_reason']}" in shown.stdout
    assert "Saved" not in shown.stderr


def test_fit_can_tune(run, tmp_path, flats):
    flats.head(40).to_csv(tmp_path / "flats.csv", index=False)
    path = tmp_path / "m.kstonet"
    result = run("fit", tmp_path / "flats.csv", "-t", "heat", "--max-iter", 2, "--tune", "--gamma", "0.5", "-o", path, "--json")
    found = json.loads(result.stdout)
    assert list(found["tuned"]) == ["C"]
    assert found["notes"] == []
    model = kstonet.load(path)
    assert (model.C, model.gamma, model.verbose) == ("tune", 0.5, 0)
    assert model.tuned_ == found["tuned"]
