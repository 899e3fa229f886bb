//! Facts of common devices, so that kernel selection is tested without them.

use crate::gpu::{DeviceFacts, MatrixInt8, MatrixUnits};

/// Common devices, as wgpu or a browser describes them, with a name for messages.
pub fn real_devices() -> Vec<(&'static str, DeviceFacts)> {
    let native = DeviceFacts {
        f16: true,
        binding_bytes: 4 << 30,
        buffer_bytes: 1 << 40,
        storage_buffers: 16,
        invocations: 1024,
        workgroup_bytes: 32 << 10,
        packed_dot: true,
        timestamps: true,
        ..DeviceFacts::floor()
    };
    let page = DeviceFacts {
        binding_bytes: (2 << 30) - 4,
        buffer_bytes: 2 << 30,
        storage_buffers: 10,
        ..native.clone()
    };
    let nvidia = DeviceFacts {
        subgroups: Some((32, 32)),
        matrix: Some(MatrixUnits::Wgpu16),
        workgroup_bytes: 48 << 10,
        storage_buffers: 1 << 20,
        ..native.clone()
    };
    let chromium = DeviceFacts { subgroups: Some((32, 32)), ..page.clone() };
    vec![
        ("NVIDIA, Vulkan", nvidia.clone()),
        ("NVIDIA without matrix units, Vulkan", DeviceFacts { matrix: None, ..nvidia }),
        (
            "AMD, Vulkan",
            DeviceFacts {
                subgroups: Some((32, 64)),
                workgroup_bytes: 64 << 10,
                storage_buffers: 1 << 20,
                ..native.clone()
            },
        ),
        ("AMD GCN, Vulkan", DeviceFacts { subgroups: Some((64, 64)), ..native.clone() }),
        ("Intel, Vulkan", DeviceFacts { subgroups: Some((8, 32)), ..native.clone() }),
        (
            "Apple, Metal",
            DeviceFacts {
                subgroups: Some((32, 32)),
                packed_dot: false,
                storage_buffers: 31,
                ..native.clone()
            },
        ),
        ("Windows, DX12", DeviceFacts { subgroups: Some((16, 64)), ..native }),
        (
            "Adreno, Vulkan",
            DeviceFacts {
                subgroups: Some((64, 128)),
                binding_bytes: 128 << 20,
                buffer_bytes: 1 << 30,
                storage_buffers: 24,
                ..page.clone()
            },
        ),
        (
            "Mali in a page",
            DeviceFacts {
                subgroups: Some((4, 16)),
                binding_bytes: 128 << 20,
                buffer_bytes: 256 << 20,
                storage_buffers: 8,
                invocations: 256,
                ..page.clone()
            },
        ),
        (
            "Chromium with matrix units",
            DeviceFacts { matrix: Some(MatrixUnits::Chromium16), ..chromium.clone() },
        ),
        (
            "Chromium with int8 matrix units",
            DeviceFacts { f16: false, matrix_int8: Some(MatrixInt8::Chromium), ..chromium.clone() },
        ),
        ("Chromium", chromium.clone()),
        ("Chromium without f16", DeviceFacts { f16: false, ..chromium.clone() }),
        (
            "Chromium with bindings of 128 MiB",
            DeviceFacts { binding_bytes: 128 << 20, buffer_bytes: 256 << 20, ..chromium },
        ),
        ("SwiftShader", DeviceFacts { subgroups: Some((4, 4)), f16: false, ..page.clone() }),
        ("Firefox", DeviceFacts { storage_buffers: 8, packed_dot: false, ..page.clone() }),
        (
            "Firefox without f16",
            DeviceFacts { f16: false, storage_buffers: 8, packed_dot: false, ..page },
        ),
        ("the least of WebGPU", DeviceFacts::floor()),
    ]
}
