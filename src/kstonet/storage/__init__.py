"""Files of tensors and JSON, which models and checkpoints are made of: ``values``, ``records``, ``container``, ``errors``."""
