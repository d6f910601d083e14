# SPDX-License-Identifier: Apache-2.0
"""Models with known counters, as XSP writes its traces.

    layers = [Layer("conv1", "Convolution", [Kernel("gemm", us=10, flops=1e6, read=4096, written=1024, occupancy=0.5)])]
    path = write(tmp_path / "m.json", layers, runs=3)
"""
import dataclasses
import json

from test_import_jaeger import cupti, document, span, tag


@dataclasses.dataclass
class Kernel:
    name: str
    us: float
    flops: float = None
    read: float = None
    written: float = None
    occupancy: float = None

    def counters(self):
        fields = [("flop_count_sp", self.flops, "int64"), ("dram_read_bytes", self.read, "int64"),
                  ("dram_write_bytes", self.written, "int64"), ("achieved_occupancy", self.occupancy, "float64")]
        return [tag(name, value if kind == "float64" else int(value), kind)
                for name, value, kind in fields if value is not None]


@dataclasses.dataclass
class Layer:
    name: str
    type: str
    kernels: list
    us: float = 10  # on the host: it does not wait for the kernels


def spans(layers, runs, framework="MXNet", version=None, batch=None):
    """Each prediction waits for its kernels, which run one after the other. Times in µs."""
    made, now, number, correlation = [], 1000, 1, 10
    for _ in range(runs):
        own, at, device = [], now + 10, now + 10
        top = number
        number += 2
        for layer in layers:
            number += 1
            own.append(span(number, layer.name, at, layer.us, "FRAMEWORK", top, [("static_type", layer.type)]))
            for place, kernel in enumerate(layer.kernels):
                number += 2
                correlation += 1
                launch = at + (place + 1) * layer.us / (len(layer.kernels) + 2)
                own.append(span(number - 1, "cuda_launch", launch, 0.5, "SYSTEM_LIBRARY", top,
                                cupti(correlation, function_name="cudaLaunchKernel", kernel=kernel.name),
                                logs=[{"timestamp": 1, "fields": kernel.counters()}]))
                device = max(device, launch + 1)
                own.append(span(number, "gpu_kernel", device, kernel.us, "SYSTEM_LIBRARY", top,
                                [("name", kernel.name), ("correlation_id", str(correlation)), ("device_id", "0"),
                                 ("context_id", "1"), ("stream_id", "7")]))
                device += kernel.us
            at += layer.us
        end = max(at, device)
        made.append(span(top, "PredictImage", now, end - now + 20, "APPLICATION",
                         tags=[(key, str(value)) for key, value in (
                             ("framework_name", framework), ("framework_version", version), ("batch_size", batch))
                             if value is not None]))
        made.append(span(top + 1, "c_predict", now + 5, end - now + 10, "MODEL", top))
        made += own
        number += 1
        now = end + 1000
    return made


def write(path, layers, runs=1, **options):
    path.write_text(json.dumps(document(spans(layers, runs, **options))))
    return path
