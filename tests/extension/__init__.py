"""A package that knows kstonet, and that kstonet does not know: a kernel, a Gram, a layer and a sampler, one file each."""
