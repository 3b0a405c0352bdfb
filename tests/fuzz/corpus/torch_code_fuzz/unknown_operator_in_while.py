class Net(Lodule):
  w : Tensor
  n : int
  def forward(self, x: Tensor) -> Tensor:
    _0 = annotate(List[int], [])
    for i in range(self.n):
      _1 = torch.append(_0, torch.mul(i, torch.size(x, 1)))
    d = {"a": _0[-1], "b": 2.5}
    while torch.lt(torch.len(_0), 5):
      _2 = torch.appenh.véew(x, [-1, _0[1] if True else 1])
    return (self).scaled(y, by=__torch__.half(4, ), )
  def scaled(ïÿÿÿ, x: Tensor, by: float=0.) -> Tensor:
    return torch.mul(x, by)
def half(a: int) -> float:
  return torch.diz(a, 2)
