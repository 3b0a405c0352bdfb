"""Nets on the fixed-point core APUS: quantized here by `npuc`, the header as C, its Q values, and
the simulator against float and against the best that 16 bits can do.

    apus [NAME...]   NAME: fsmn, kws

Every error is counted in steps of the output's own resolution, 2^-Q, on data that calibration did
not see. An output that only passes values on must be within one step of float. Of the others:

- The simulator's value must be that of apus_emulation.py, an emulation in NumPy that rounds each
  tensor once to 16 bits and is exact in all else: layer by layer to the bit, behind a softmax
  within one step (its table). So nothing is lost beyond what the format takes.
- Where that is more than one step from float, the format is shown to make it impossible: one of
  the tensors rounded alone, all else in float, moves the output by more than a step. Both are
  printed, and the error against the float model on the inputs as the header stores them, what the
  header's inputs and states alone cost (no arithmetic behind them can do better), and what a Q a
  channel would give in place of one a tensor.
"""

import ast
import json
import os
import re

import numpy as np

import harness  # puts tests/models on the path, so first
import apus_emulation as emulation
import guide_nets
import headers

FRAMES = 50
CALIBRATION_FRAMES = 200
SEED = 5
KWS_ITEMS = 200
LAYER_ITEMS = 40  # of kws, all layers compared


def check_q(name, q, greatest):
    """`greatest`: magnitude of everything that the tensor held in calibration. The Q is right where
    that fits 16 bits at it, and would not at the next."""
    harness.check(greatest * 2.0**q < 32768, f"{name}: Q {q}: {greatest} does not fit 16 bits")
    harness.check(greatest * 2.0**(q + 1) > 32767, f"{name}: Q {q}: {greatest} would fit {q + 1}")


def macro(name):
    return re.sub(r"\W", "_", name).upper()


def compile_apus(folder, config_text, samples):
    for name, array in samples.items():
        np.save(os.path.join(folder, f"calibration_{name}.npy"), array)
    files = ", ".join(f"{n}: calibration_{n}.npy" for n in samples)
    config = os.path.join(folder, "apus.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(config_text + f"QUANT:\n  calibration_data: {{{files}}}\n")
    harness.npuc(config, "-o", folder)
    header = os.path.join(folder, "model.h")
    return config, header, headers.check_header(header, fixed_point=True)[2]


def check_quant_file(folder, config, config_text):
    """-q writes the quantization file and no header; a compile from it needs no data and gives the
    same bytes."""
    out = os.path.join(folder, "q")
    harness.npuc(config, "-q", "-o", out)
    harness.check(sorted(os.listdir(out)) == ["opt_template.json", "statistics.json"],
                  f"npuc -q wrote {sorted(os.listdir(out))}")
    again = os.path.join(folder, "again.yaml")
    with open(again, "w", encoding="utf-8") as f:
        f.write(config_text + "QUANT: {statistic_file: q/statistics.json}\n")
    harness.npuc(again, "-o", os.path.join(folder, "again"))
    contents = []
    for path in (os.path.join(folder, "model.h"), os.path.join(folder, "again", "model.h")):
        with open(path, "rb") as f:
            contents.append(f.read())
    harness.check(contents[0] == contents[1], "a compile from the quantization file differs")


def template_qs(folder):
    """The Q of every tensor, from the written template."""
    with open(os.path.join(folder, "opt_template.json"), encoding="utf-8") as f:
        layers = json.load(f)
    qs = {}
    for layer in layers.values():
        tensors = ast.literal_eval(layer["just_for_display"]["quantization_info"])
        for name, tensor in tensors.items():
            qs[name] = int(np.log2(float(tensor["scale"].strip("[]"))))
    return qs


def check_all_qs(folder, watch):
    """Each tensor that the emulation knows, by its own calibration."""
    qs = template_qs(folder)
    for name, greatest in watch.magnitudes.items():
        check_q(name, qs[name], greatest)
    return {name: qs[name] for name in watch.magnitudes}


def steps(got, want, q):
    return np.abs(got.reshape(want.shape).astype(np.float64) - want) * 2.0**q


def check_layers(net, simulated, emulated, qs, table_of):
    """Every tensor of the simulator is the emulation's; `table_of`: those within one step."""
    for name, want in emulated.items():
        off = steps(simulated[name], want, qs[name]).max()
        harness.check(off <= (1 if name in table_of else 0),
                      f"{net}: {name} is {off} steps off the ideal rounding")
    return len(emulated)


def compare(net, simulated, runs, name, q, inputs, tensors, alone):
    """The output `name`. runs: of the emulation, "float", "ideal", "channels" (a Q a channel), and
    "stored", which is float on stored inputs, and "ports", float but for the header's own inputs
    and states; alone(tensor): the output with that tensor alone rounded. Returns a figure."""
    want = runs["float"]
    harness.check(np.abs(want).max() > 4 * 2.0**-q, f"{net}: {name} is all but zero")
    error, ideal = steps(simulated, want, q), steps(runs["ideal"], want, q)
    from_ideal = steps(simulated, runs["ideal"], q).max()
    harness.check(from_ideal <= 1, f"{net}: {name} is {from_ideal} steps off the ideal rounding")
    text = (f"{name}: off float by {np.median(error):.2f} steps in the median, "
            f"{100 * (error <= 1).mean():.1f} % within one, {error.max():.2f} at most (on stored "
            f"inputs {steps(simulated, runs['stored'], q).max():.2f}); what the header's inputs "
            f"and states cost alone: {steps(runs['ports'], want, q).max():.2f}; each tensor "
            f"rounded once, ideally: {ideal.max():.2f}; with a Q a channel: "
            f"{steps(runs['channels'], want, q).max():.2f}")
    if error.max() > 1:
        single = {t: steps(alone(t), want, q).max() for t in tensors}
        most = max(single, key=single.get)
        harness.check(single[most] > 1, f"{net}: {name} is {error.max():.2f} steps off, and no "
                      f"tensor alone moves it by more than {single[most]:.2f}: {single}")
        text += f"; '{most[-40:]}' alone: {single[most]:.2f}"
        text += "".join(f"; input '{t}' alone: {single[t]:.2f}" for t in inputs)
    return text


def fsmn_samples(net, feats, at):
    values = emulation.frames(net, feats, at)
    samples = {name: values[name].astype(np.float32) for name in net.inputs}
    samples["Feats"] = feats.reshape(-1, 1, 64)
    return samples


def fsmn():
    net = next(n for n in guide_nets.guide_nets() if n.name == "fsmn")
    random = np.random.RandomState(SEED)
    feats = random.randn(CALIBRATION_FRAMES + FRAMES, 1, 64).astype(np.float32)
    seen, unseen = feats[:CALIBRATION_FRAMES], feats[CALIBRATION_FRAMES:]
    with harness.scratch() as folder:
        model = os.path.join(folder, "model.pb")
        with open(model, "wb") as f:
            f.write(net.graph.serialize())
        text = net.config(model).replace("CORENAME: GRUS\nNPU_UNIT: NPU32\n", "CORENAME: APUS\n")
        text = re.sub(r"^(FP16_OUT_OPS|COMPRESS):.*\n", "", text, flags=re.M)
        # Every frame of a run is a calibration sample, with the states that it met.
        watch = emulation.Watch()
        config, header, q = compile_apus(folder, text, fsmn_samples(net, seen, watch))
        qs = check_all_qs(folder, watch)
        for name in (*net.inputs, *net.outputs):
            tensor = net.states.get(name, name)  # a state's output is its input's tensor
            harness.check(q[macro(name)] == qs[tensor], f"{name}: the header's Q is another")
        simulated = harness.simulate(header, {"Feats": unseen}, os.path.join(folder, "sim"),
                                     net.outputs)
        reference = harness.simulate(config, {"Feats": unseen}, os.path.join(folder, "ref"),
                                     net.outputs, verb="reference")
        run = lambda at, x=unseen: emulation.frames(net, x, at)
        exact, ideal = run(emulation.Exact()), run(emulation.Rounded(qs))
        stored = run(emulation.Exact(), emulation.to_q(unseen.astype(np.float64), qs["Feats"]))
        for name in net.outputs:
            off = np.abs(reference[name].reshape(exact[name].shape) - exact[name]).max()
            harness.check(off < 1e-4, f"npuc reference of {name} is {off} off NumPy")
        check_layers("fsmn", simulated, {n: ideal[n] for n in net.outputs},
                     {n: qs[net.states.get(n, n)] for n in net.outputs}, ["phone_prob"])
        # The first memory holds inputs as they came; the others hold what layers computed.
        name = "State_c0_out"
        passed = steps(simulated[name], exact[name], qs["State_c0"]).max()
        harness.check(passed <= 1, f"{name} only passes inputs on, and is {passed} steps off")
        ports = (*net.inputs, *net.outputs)
        channels = run(emulation.RoundedByChannel(watch, qs, ports))
        through_ports = run(emulation.Rounded(qs, only=net.inputs))
        for name in net.outputs:
            runs = {"float": exact[name], "ideal": ideal[name], "stored": stored[name],
                    "channels": channels[name], "ports": through_ports[name]}
            alone = lambda t, n=name: run(emulation.Rounded(qs, only=[t]))[n]
            figure = compare("fsmn", simulated[name], runs, name, qs[net.states.get(name, name)],
                             ["Feats"], qs, alone)
            harness.figure(f"APUS, fsmn, {FRAMES} frames, states fed back, {figure}")
        check_quant_file(folder, config, text)


def check_kws_layers(folder, config, net, qs, x, ideal):
    """The same net with every layer an output: Q values stay, so every tensor can be compared."""
    names = [n for n in ideal if n != net.input]
    with open(config, encoding="utf-8") as f:
        text = f.read()
    path = os.path.join(folder, "layers.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text + f"OUTPUT_OPS: {json.dumps(names)}\n")
    out = os.path.join(folder, "layers")
    harness.npuc(path, "-o", out)
    simulated = harness.simulate(os.path.join(out, "model.npuc"), {net.input: x}, out, names)
    return check_layers("kws", simulated, {n: ideal[n][:len(x)] for n in names}, qs, [net.output])


def kws():
    codes = np.load(harness.shared("datasets", "kws01", "inputs_int8.npy"))
    labels = np.load(harness.shared("datasets", "kws01", "labels.npy"))
    real = (0.58470291 * (codes.astype(np.float32) - 83)).astype(np.float32)[..., None]
    half = len(real) // 2
    model = harness.shared("models", "tflite", "mlperf_tiny", "kws_ref_model_float32.tflite")
    text = f"CORENAME: APUS\nFRAMEWORK: TFLITE\nMODEL_FILE: {model}\nOUTPUT_FILE: model.h\n"
    net = emulation.TfliteNet(model)
    with harness.scratch() as folder:
        np.save(os.path.join(folder, "samples.npy"), real[:half])
        config = os.path.join(folder, "apus.yaml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(text + "QUANT: {calibration_data: samples.npy}\n")
        harness.npuc(config, "-o", folder)
        header = os.path.join(folder, "model.h")
        q = headers.check_header(header, fixed_point=True)[2]
        watch = emulation.Watch()
        net.forward(real[:half], watch)
        qs = check_all_qs(folder, watch)
        output = net.output
        for name in (net.input, output):
            harness.check(q[macro(name)] == qs[name], f"{name}: the header's Q is another")
        x = real[half:half + KWS_ITEMS]
        simulated = harness.simulate(header, {net.input: x}, os.path.join(folder, "sim"), [output])
        reference = harness.simulate(config, {net.input: x}, os.path.join(folder, "ref"), [output],
                                     verb="reference")
        exact, ideal = (net.forward(x, at) for at in (emulation.Exact(), emulation.Rounded(qs)))
        stored = net.forward(emulation.to_q(x, qs[net.input]), emulation.Exact())
        off = np.abs(reference[output].reshape(exact[output].shape) - exact[output]).max()
        harness.check(off < 1e-4, f"npuc reference is {off} off NumPy")
        channels = net.forward(x, emulation.RoundedByChannel(watch, qs, (net.input, output)))
        runs = {"float": exact[output], "ideal": ideal[output], "stored": stored[output],
                "channels": channels[output], "ports": stored[output]}
        alone = lambda t: net.forward(x, emulation.Rounded(qs, only=[t]))[output]
        figure = compare("kws", simulated[output], runs, output, qs[output], [net.input], qs,
                         alone)
        layers = check_kws_layers(folder, config, net, qs, x[:LAYER_ITEMS], ideal)
        right, wanted = (int((a[output].argmax(-1) == labels[half:half + KWS_ITEMS]).sum())
                         for a in (simulated, reference))
        harness.check(abs(right - wanted) <= 1, f"{right} right, the float model {wanted}")
        check_quant_file(folder, config, text)
    harness.figure(f"APUS, kws, {KWS_ITEMS} items, {figure}; {layers} layers equal the ideal "
                   f"rounding; {right} right (float {wanted}); Q {q}")


def main(arguments):
    nets = {"fsmn": fsmn, "kws": kws}
    harness.check(all(a in nets for a in arguments), f"nets are {list(nets)}")
    for name in arguments or nets:
        nets[name]()
