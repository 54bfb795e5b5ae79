"""The Cauchy kernel, k(x, z) = 1/(1 + gamma |x - z|²): smooth like the RBF kernel, with tails that reach far."""

from dataclasses import dataclass

from kstonet.gram import register_kernel
from kstonet.gram.kernels import Stationary


@dataclass(frozen=True)
class Cauchy(Stationary):
    """1/(1 + gamma s) of the squared distance s, a mixture of RBF kernels of all widths."""

    def profile(self, s):
        return 1.0 / (1.0 + self.gamma * s)

    def slopes(self, s):  # gradients, and length scales learned by the evidence
        k = self.profile(s)
        return k, -self.gamma * k * k

    def _graph(self, x, basis):  # kstonet.to_onnx
        return 1.0 / (1.0 + self.gamma * self.graph_distances(x, basis))


register_kernel("cauchy", Cauchy)
