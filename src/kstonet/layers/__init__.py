"""The layers of a network, each a conditional distribution."""
