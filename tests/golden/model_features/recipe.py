"""Keyword nets that begin with sound: of a stated number of samples, and of any."""

import recipes

STRING = 7


def net(samples):
    graph = recipes.Graph()
    graph.node("Placeholder", "wav", [], {"dtype": recipes.DType(STRING)})
    graph.node("DecodeWav", "sound", ["wav"], {"desired_channels": 1, "desired_samples": samples})
    graph.node("AudioSpectrogram", "spectrogram", ["sound"],
               {"window_size": 480, "stride": 320, "magnitude_squared": True})
    graph.node("Mfcc", "mfcc", ["spectrogram", "sound:1"],
               {"dct_coefficient_count": 4, "upper_frequency_limit": 4000.0,
                "lower_frequency_limit": 20.0, "filterbank_channel_count": 40})
    graph.const("shape", recipes.np.array([-1, 12], dtype=recipes.np.int32))
    graph.node("Reshape", "flat", ["mfcc", "shape"], recipes.FLOAT)
    return recipes.dense(graph, source="flat", shape=(12, 3)).serialize()


def files():
    return {"model.pb": net(1120), "open.pb": net(-1)}
