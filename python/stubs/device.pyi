__all__: list = ['cpu', 'cuda', 'hexagon', 'level_zero', 'metal', 'opencl', 'rocm', 'vulkan', 'webgpu']
cpu: _Device
cuda: _Device
hexagon: _Device
level_zero: _Device
metal: _Device
opencl: _Device
rocm: _Device
vulkan: _Device
webgpu: _Device
