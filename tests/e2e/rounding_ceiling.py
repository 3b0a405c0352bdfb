"""How near to float resnet8 comes with 4-bit weights when nothing but that binds it: an experiment.

    rounding_ceiling.py [--pictures N] [--steps N] [--rate R] [--gradual] [--leaves]

Needs PyTorch; takes minutes to an hour.

Apart from npuc, in PyTorch: the MLPerf Tiny net with activations in float, each weight an integer
of -8..7 times its channel's scale. Integers, scales and biases are all trained together, end to
end, towards the float net's outputs (straight-through rounding, Adam; the divergence of the outputs
and the distance of every layer's result), on seeded pictures as many as wanted. Printed: the output
cosine on the pictures trained on, and on those that suite `quantizing` judges by, which are never
trained on. It is a search, not a bound: another one may get further. A latent weight moves by at
most half of rate times steps (0.2 of a step of its scale with 400 steps of 0.001), so short runs
leave most integers where they start.

--gradual: layer after layer, in two parts each, weights become integers by GPTQ; after each part
all that is not integers yet is trained, as above, to make up for it (Zhou et al., Incremental
network quantization, 2017). There --steps is of each of the 20 parts, and 0.003 a good rate.
"""

import argparse

import numpy as np
import torch
import torch.nn.functional as F

import harness
import int8_emulation
import quantizing
import seeded_pictures

LOW, HIGH = -8, 7
PARTS = np.linspace(1, 0.5, 6)  # of the greatest magnitude, tried as scales to start from


class Net:
    """The float net of a .tflite file, with any weights and biases by operator."""

    def __init__(self, path):
        self.model = int8_emulation.Model(path)
        self.weights, self.biases = {}, {}
        for k, (kind, inputs, _, _) in enumerate(self.model.ops):
            if kind not in ("CONV_2D", "FULLY_CONNECTED"):
                continue
            weight = self.model.tensors[inputs[1]].constant
            weight = weight.transpose(0, 3, 1, 2) if kind == "CONV_2D" else weight
            self.weights[k] = torch.tensor(weight.copy())
            self.biases[k] = torch.tensor(self.model.tensors[inputs[2]].constant.copy())

    @staticmethod
    def padded(x, weight, options):
        strides = options.scalar(2, "i", 1), options.scalar(1, "i", 1)
        margins = []
        for size, kernel, stride in zip(x.shape[2:], weight.shape[2:], strides):
            before, out = int8_emulation.padding(options.scalar(0, "b"), size, kernel, stride)
            margins = [before, max(0, (out - 1) * stride + kernel - size - before)] + margins
        return F.pad(x, margins), strides

    def run(self, x, weights, biases):
        """(logits, the result of every operator before) of x [N,C,H,W]."""
        values, results = {self.model.inputs[0]: x}, {}
        for k, (kind, inputs, outputs, options) in enumerate(self.model.ops):
            y = values[inputs[0]]
            if kind == "CONV_2D":
                y, strides = self.padded(y, weights[k], options)
                y = F.conv2d(y, weights[k], biases[k], stride=strides)
                y = F.relu(y) if options.scalar(3, "b") == 1 else y
            elif kind == "FULLY_CONNECTED":
                y = F.linear(y, weights[k], biases[k])
            elif kind == "ADD":
                y = y + values[inputs[1]]
                y = F.relu(y) if options.scalar(0, "b") == 1 else y
            elif kind == "AVERAGE_POOL_2D":
                y = y.mean((2, 3), keepdim=True)
            elif kind == "RESHAPE":
                y = y.reshape(len(y), -1)
            else:
                harness.check(kind == "SOFTMAX", f"operator {kind}")
                return y, results
            values[outputs[0]] = results[k] = y
        return y, results


def each(scale, weight):
    return scale.view(-1, *[1] * (weight.dim() - 1))


def patches(net, k, x):
    """The operands of each result of operator k: [rows, weights of a channel]."""
    weight = net.weights[k]
    if weight.dim() == 2:
        return x
    x, strides = net.padded(x, weight, net.model.ops[k][3])
    rows = F.unfold(x, weight.shape[2:], stride=strides).permute(0, 2, 1)
    return rows.reshape(-1, rows.shape[2])


def in_turn(gram, target, scales):
    """Integers [O,n] that GPTQ gives for the least v' gram v - 2 v' target, and that least."""
    order = torch.argsort(gram.diagonal(), descending=True)
    inverse = torch.linalg.inv(gram[order][:, order])
    upper = torch.linalg.cholesky(inverse).t()
    left = torch.linalg.solve(gram, target.t()).t()[:, order].clone()
    found = torch.zeros_like(left)
    for i in range(len(order)):
        found[:, i] = (left[:, i] / scales).round().clamp(LOW, HIGH)
        error = (left[:, i] - found[:, i] * scales) / upper[i, i]
        left[:, i:] -= error[:, None] * upper[i, i:]
    q = torch.empty_like(found)
    q[:, order] = found
    v = q * scales[:, None]
    return q, (v * (v @ gram - 2 * target)).sum(1)


def start_of(net, pictures):
    """Layer by layer: integers by GPTQ on the quantized net's operands, scales, biases."""
    weights, biases = dict(net.weights), dict(net.biases)
    integers, scales = {}, {}
    _, exact = net.run(pictures, net.weights, net.biases)
    maker = {outputs[0]: k for k, (_, _, outputs, _) in enumerate(net.model.ops)}
    random = torch.Generator().manual_seed(1)
    for k, weight in net.weights.items():
        _, here = net.run(pictures, weights, biases)
        source = maker.get(net.model.ops[k][1][0])
        x, y = ((pictures, pictures) if source is None else (exact[source], here[source]))
        x, y = patches(net, k, x), patches(net, k, y)
        rows = torch.randperm(len(x), generator=random)[:8192]
        x, y = x[rows].double(), y[rows].double()
        flat = weight.flatten(1).double()
        means = x.mean(0), y.mean(0)
        x, y = x - means[0], y - means[1]
        damping = 0.1 * (y * y).sum() / y.shape[1] * torch.eye(y.shape[1]).double()
        gram, target = y.t() @ y + damping, flat @ (y.t() @ x + damping).t()
        least = torch.full((len(flat),), float("inf")).double()
        q, s = torch.zeros_like(flat), torch.ones(len(flat)).double()
        for part in PARTS:
            tried = flat.abs().amax(1) * part / (HIGH + 0.5)
            found, error = in_turn(gram, target, tried)
            better = error < least
            least[better], q[better], s[better] = error[better], found[better], tried[better]
        integers[k], scales[k] = q.float().view_as(weight), s.float()
        weights[k] = integers[k] * each(scales[k], weight)
        biases[k] = net.biases[k] + (flat @ means[0] - (q * s[:, None]) @ means[1]).float()
    return integers, scales, biases


class Trained:
    """What is trained: latent weights in steps of their scales, logarithms of scales, biases."""

    def __init__(self, net, start):
        integers, scales, biases = start
        self.net = net
        # Latent weights lie toward the float ones, as far as their integers allow.
        self.latent = {k: (q + (net.weights[k] / each(scales[k], q) - q).clamp(-0.45, 0.45))
                       .requires_grad_() for k, q in integers.items()}
        self.scales = {k: s.log().requires_grad_() for k, s in scales.items()}
        self.biases = {k: b.clone().requires_grad_() for k, b in biases.items()}

    def parameters(self):
        return [p for group in (self.latent, self.scales, self.biases) for p in group.values()]

    def weights(self):
        made = {}
        for k, latent in self.latent.items():
            kept = latent.clamp(LOW, HIGH)
            made[k] = ((kept + (kept.round() - kept).detach())
                       * each(self.scales[k].exp(), latent))
        return made

    def cosine(self, x):
        with torch.no_grad():
            wanted, _ = self.net.run(x, self.net.weights, self.net.biases)
            found, _ = self.net.run(x, self.weights(), self.biases)
        return quantizing.cosine(F.softmax(found, -1).numpy(), F.softmax(wanted, -1).numpy())


def distance(net, x, weights, biases, part):
    """Of the outputs from the float net's, and that part of every operator's distance."""
    with torch.no_grad():
        wanted, exact = net.run(x, net.weights, net.biases)
    found, results = net.run(x, weights, biases)
    loss = F.kl_div(F.log_softmax(found, -1), F.softmax(wanted, -1), reduction="batchmean")
    for k, value in exact.items():
        loss = loss + part * ((results[k] - value) / value.std()).pow(2).mean()
    return loss


def train(trained, pictures, judged, steps, rate):
    """Prints the cosines as it goes."""
    net = trained.net
    optimizer = torch.optim.Adam(trained.parameters(), lr=rate)
    for step in range(steps + 1):
        if step % 100 == 0 or step == steps:
            print(f"step {step}: cosine {trained.cosine(pictures[:400]):.4f} on pictures trained "
                  f"on, {trained.cosine(judged):.4f} on others", flush=True)
        optimizer.param_groups[0]["lr"] = rate * 0.5 * (1 + np.cos(np.pi * step / steps))
        x = pictures[torch.randint(0, len(pictures), (32,))]
        loss = distance(net, x, trained.weights(), trained.biases, 0.1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Gradual:
    """Some weights are integers times scales, the others what training made of them."""

    def __init__(self, net):
        self.net, self.scales = net, {}
        self.weights = {k: w.flatten(1).clone() for k, w in net.weights.items()}
        self.biases = {k: b.clone() for k, b in net.biases.items()}
        self.settled = {k: torch.zeros(w.shape[1], dtype=torch.bool)
                        for k, w in self.weights.items()}

    def shaped(self, weights):
        return {k: w.view_as(self.net.weights[k]) for k, w in weights.items()}

    def cosine(self, x):
        with torch.no_grad():
            wanted, _ = self.net.run(x, self.net.weights, self.net.biases)
            found, _ = self.net.run(x, self.shaped(self.weights), self.biases)
        return quantizing.cosine(F.softmax(found, -1).numpy(), F.softmax(wanted, -1).numpy())

    def moments(self, k, pictures):
        """(moments of the operands about their means, these means)"""
        _, here = self.net.run(pictures, self.shaped(self.weights), self.biases)
        source = [o for o, op in enumerate(self.net.model.ops)
                  if op[2][0] == self.net.model.ops[k][1][0]]
        rows = patches(self.net, k, here[source[0]] if source else pictures)
        rows = rows[torch.randperm(len(rows))[:16384]].double()
        rows, mean = rows - rows.mean(0), rows.mean(0)
        gram = rows.t() @ rows / len(rows)
        return gram + 0.01 * gram.diagonal().mean() * torch.eye(len(gram)).double(), mean

    def rounded(self, k, gram, scales, count):
        """(weights of which `count` inputs more are integers, which are): GPTQ."""
        weights, settled = self.weights[k].double(), self.settled[k].clone()
        free = torch.nonzero(~settled).flatten()
        order = free[torch.argsort(gram.diagonal()[free], descending=True)]
        upper = torch.linalg.cholesky(torch.linalg.inv(gram[order][:, order])).t()
        left = weights[:, order]
        for i in range(min(count, len(order))):
            value = (left[:, i] / scales).round().clamp(LOW, HIGH) * scales
            error = (left[:, i] - value) / upper[i, i]
            left[:, i + 1:] -= error[:, None] * upper[i, i + 1:]
            left[:, i] = value
        weights[:, order] = left
        settled[order[:count]] = True
        return weights, settled

    def settle(self, k, pictures, count):
        gram, mean = self.moments(k, pictures)
        weights = self.weights[k].double()
        if k not in self.scales:
            least = torch.full((len(weights),), float("inf")).double()
            self.scales[k] = torch.zeros_like(least)
            for part in np.linspace(1, 0.45, 12):
                tried = weights.abs().amax(1) * part / (HIGH + 0.5)
                change = self.rounded(k, gram, tried, weights.shape[1])[0] - weights
                error = ((change @ gram) * change).sum(1)
                better = error < least
                least[better], self.scales[k][better] = error[better], tried[better]
        found, self.settled[k] = self.rounded(k, gram, self.scales[k], count)
        self.biases[k] = self.biases[k] + ((weights - found) @ mean).float()
        self.weights[k] = found.float()

    def train(self, pictures, steps, rate):
        """What is not settled, by distances in steps; scales of what is; biases."""
        net = self.net
        moves = {k: torch.zeros_like(w).requires_grad_() for k, w in self.weights.items()}
        gains = {k: torch.zeros(len(w), 1).requires_grad_() for k, w in self.weights.items()}
        shifts = {k: torch.zeros_like(b).requires_grad_() for k, b in self.biases.items()}
        units = {k: w.abs().amax(1, keepdim=True) / (HIGH + 0.5) * ~self.settled[k]
                 for k, w in self.weights.items()}

        def made():
            weights = {k: (w + moves[k] * units[k]) * (gains[k].exp() if k in self.scales else 1)
                       for k, w in self.weights.items()}
            return weights, {k: b + shifts[k] for k, b in self.biases.items()}

        optimizer = torch.optim.Adam([{"params": list(p.values()), "factor": factor} for p, factor
                                      in ((moves, 1), (gains, 0.1), (shifts, 0.2))])
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = (rate * group["factor"] * min(1, (step + 1) / 10)
                               * 0.5 * (1 + np.cos(np.pi * step / steps)))
            x = pictures[torch.randint(0, len(pictures), (32,))]
            weights, biases = made()
            optimizer.zero_grad()
            distance(net, x, self.shaped(weights), biases, 0.03).backward()
            optimizer.step()
        with torch.no_grad():
            self.weights, self.biases = made()
            for k, scales in self.scales.items():
                self.scales[k] = scales * gains[k].exp().double().flatten()


def run_gradually(net, pictures, judged, steps, rate):
    """Prints the cosines as it goes."""
    state = Gradual(net)
    for k, settled in state.settled.items():
        for part in range(2):
            half = -(-len(settled) // 2)
            some = pictures[torch.randperm(len(pictures))[:400]]
            with torch.no_grad():
                state.settle(k, some, half if part == 0 else len(settled) - half)
            state.train(pictures, steps, rate)
            print(f"operator {k}, part {part}: cosine {state.cosine(pictures[:400]):.4f} on "
                  f"pictures trained on, {state.cosine(judged):.4f} on others", flush=True)
    for k, weights in state.weights.items():
        steps_of = weights.double() / state.scales[k][:, None]
        harness.check(bool(((steps_of - steps_of.round()).abs() < 1e-3).all()), f"operator {k}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pictures", type=int, default=1600)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rate", type=float, default=1e-3, help="in steps of a weight's scale")
    parser.add_argument("--gradual", action="store_true", help="integers layer after layer")
    parser.add_argument("--leaves", action="store_true", help="dead leaves, not coloured fields")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the same sums whatever the machine has
    net = Net(harness.shared("models", "tflite", "mlperf_tiny", "resnet8_float.tflite"))
    tensor = lambda images: torch.tensor(images.transpose(0, 3, 1, 2).copy())
    make = seeded_pictures.leaves if arguments.leaves else seeded_pictures.fields
    seen, judged = map(tensor, make(np.random.default_rng(7)))
    if arguments.pictures > len(seen):
        many = [p for seed in range(100, 100 + -(-arguments.pictures // 400))
                for p in make(np.random.default_rng(seed))]
        seen = tensor(np.concatenate(many))[:arguments.pictures]
    seen = seen[:arguments.pictures]
    if arguments.gradual:
        return run_gradually(net, seen, judged, arguments.steps, arguments.rate)
    with torch.no_grad():
        start = start_of(net, seen[:400])
    return train(Trained(net, start), seen, judged, arguments.steps, arguments.rate)


if __name__ == "__main__":
    main()
