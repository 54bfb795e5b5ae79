"""One module per result; each writes its raw figures to a JSON file in results/ and can be stopped and resumed."""
