"""Predictions as ONNX graphs: a fitted model in one file that onnxruntime runs without Python.

Five modules: ``graph`` (a small language for building graphs), ``functions`` (kernels and activations in it), ``first_layer``
(kernel expansions and their variance), ``network`` (the layers above, and the recursion of their moments), ``models`` (what a
fitted model gives to all of these, and :func:`to_onnx`).

Inside a graph, observations are columns: X enters transposed, and every layer multiplies from the left, with its constants. So
nothing has to be transposed between the input and the outputs, and products are of a constant and all observations at once.
"""

from kstonet.onnx_export.models import to_onnx

__all__ = ["to_onnx"]
