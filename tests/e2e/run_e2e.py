#!/usr/bin/python3
"""Runs one end-to-end suite on the built programs.

    run_e2e.py SUITE [ARGUMENT...]      SUITE: tf_graphs [--issue2] [--leo] [-v] [--update]
                                        [CASE...],
                                        mnist,
                                        vendor_headers, vendor_frames [--update],
                                         models [NAME...], example_nets, sample,
                                         histograms, conv_keys, torch [-v] [NAME...], service,
                                         service_e2e, tenants, onnx_backend [-v] [CASE...],
                                        report, farm, client_library, python_client,
                                        cluster [--long] [--seed N], cluster_pooler,
                                        content [--long] [--seed N],
                                        uploads [--long] [--seed N], http_api, inspections,
                                        operator_actions, tenant_actions, traces, drill,
                                        backup, upgrade [--old DIR [--make FILE]],
                                        packages,
                                        dashboard [--many [--minutes N] | --firefox],
                                        sign_in, oidc, tflite [-v] [NAME...],
                                        int8_models [NAME...], qdq [-v] [NAME...],
                                        torch_quantized [-v] [NAME...], advice,
                                        apus [NAME...], leo [NAME...],
                                        evaluate,
                                        compass_ir, compass_compile, compass_guide [--update],
                                        compass_profile, compass_statistics,
                                        compass_layers [TYPE...],
                                        model_sets, fake_quant,
                                        metrics, quantizing [--long] [NAME...],
                                        same_bytes [OTHER], threads [NAME...], cfg, bundles,
                                        full_disk, wild [-v] [--update] [NAME...],
                                        random_quantized [--count N] [SEED...],
                                        config_keys [KEY...], overflow, command_line,
                                        constants, not_finite, saturation, calibration_cost,
                                        dead_channels [--nets N] [NAME...],
                                        row_plans [--nets N] [NAME...],
                                        stripes [--nets N] [--items N] [NAME...],
                                        coded_weights [NAME...],
                                        cores [--nets N] [NAME...],
                                        first_minute [NAME...], published FOLDER [--update],
                                        caffe [-v] [--update] [NAME...],
                                        darknet [-v] [--update] [NAME...],
                                        paddle [-v] [--update] [NAME...], mxnet [NAME...],
                                        boxes [TYPE...], model_boxes [FORMAT...],
                                        detectors [NAME...], plugins, native_operators,
                                        addresses,
                                        pictures, saved_model,
                                        sounds, kept_states, torch_states,
                                        onnx_oracle [-v] [NAME...]

Environment: NPUC_BIN_DIR (default build/bin), NPUC_SHARED (default ../shared). Exit 0 passed, 1
failed, 2 wrong usage, 77 skipped because the shared folder is missing.
"""

import importlib
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402

SUITES = ("first_minute", "tf_graphs", "mnist", "vendor_headers", "vendor_frames", "models",
          "example_nets", "sample", "histograms", "conv_keys", "torch", "service", "service_e2e",
          "tenants", "onnx_backend", "report", "farm", "client_library", "python_client", "cluster",
          "cluster_pooler", "content", "uploads", "http_api",
          "inspections", "operator_actions", "tenant_actions", "traces", "drill", "backup",
          "upgrade", "packages", "dashboard", "sign_in", "oidc", "tflite", "int8_models", "qdq",
          "torch_quantized", "advice", "apus", "leo", "evaluate",
          "compass_ir", "compass_compile", "compass_guide", "compass_profile",
          "compass_statistics",
          "compass_layers", "model_sets",
          "fake_quant", "metrics", "quantizing", "same_bytes", "threads", "cfg", "bundles",
          "full_disk", "wild", "random_quantized", "config_keys", "overflow",
          "command_line", "constants", "not_finite", "saturation", "calibration_cost",
          "dead_channels", "row_plans", "stripes", "coded_weights", "cores", "published",
          "caffe", "darknet", "paddle", "mxnet", "boxes", "model_boxes", "detectors", "plugins",
          "native_operators", "addresses", "pictures", "saved_model", "vendor_like", "sounds",
          "kept_states", "torch_states", "onnx_oracle")
# Where the module cannot be named as the suite.
MODULES = {"torch": "torch_nets"}


def main():
    if len(sys.argv) < 2 or sys.argv[1] not in SUITES:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        importlib.import_module(MODULES.get(sys.argv[1], sys.argv[1])).main(sys.argv[2:])
    except harness.Failure as error:
        print(f"FAILED: {error}", flush=True)
        return 1
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
