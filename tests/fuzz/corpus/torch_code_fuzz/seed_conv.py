class Net(Module):
  w : Tensor
  n : int
  def forward(self, x: Tensor) -> Tensor:
    k = torch.ones([8, 4, 3, 3])
    y = torch.conv2d(x, k, None, [1, 1], [1, 1], [1, 1], 1)
    y = torch.batch_norm(y, None, None, torch.zeros([8]), torch.ones([8]), False, 0.1, 1e-05, True)
    y = torch.max_pool2d(torch.relu_(y), [2, 2], [2, 2], [0, 0], [1, 1], False)
    y = torch.upsample_nearest2d(y, None, [2., 2.])
    y = torch.adaptive_avg_pool2d(y, [1, None])
    return torch.flatten(torch.constant_pad_nd(y, [1, 1], 0.5), 1)
