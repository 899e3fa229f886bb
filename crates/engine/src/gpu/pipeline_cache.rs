//! The driver's pipeline cache: kernels that an earlier run compiled, kept by a [`PipelineStore`].

mod envelope;

use std::{cell::Cell, fmt, rc::Rc};

use envelope::Digest;

/// Maximum size of what a [`PipelineStore`] keeps for a key. A larger cache is neither saved nor loaded.
pub const MAX_PIPELINE_CACHE_BYTES: usize = 256 << 20;

/// Where compiled pipelines are kept between runs.
///
/// The data is compiled code in the driver's format. Each [`Self::load`] must return what [`Self::save`] got for the same key, from a place
/// that only the user can write to: checksums find damage, not malice.
pub trait PipelineStore: fmt::Debug {
    /// What was saved for a key, if anything. Damaged data is ignored.
    fn load(&self, key: &PipelineKey) -> Option<Vec<u8>>;

    /// Saves data for a key. Called when a device that compiled pipelines closes, if the data is not what was loaded.
    fn save(&self, key: &PipelineKey, data: &[u8]);
}

/// What compiled pipelines are valid for: an adapter, its driver, and this version of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PipelineKey {
    adapter: String,
    digest: Digest,
}

impl PipelineKey {
    /// `None` if the backend has no pipeline caches.
    fn new(info: &wgpu::AdapterInfo) -> Option<Self> {
        let adapter = wgpu::util::pipeline_cache_key(info)?;
        let versions = [&info.name, &info.driver, &info.driver_info, env!("CARGO_PKG_VERSION")];
        let digest = envelope::digest(format!("{adapter} {versions:?}").as_bytes());
        Some(Self { adapter, digest })
    }

    /// The adapter, in characters of file names. Keys of the same adapter with other drivers share it.
    pub fn adapter(&self) -> &str {
        &self.adapter
    }

    /// The adapter, and a hash of it, its driver and the engine's version, in characters of file names.
    pub fn name(&self) -> String {
        let hash = u64::from_be_bytes(*self.digest.first_chunk().expect("32 bytes"));
        format!("{}_{hash:016x}", self.adapter)
    }
}

/// The driver's pipeline cache of a device. It is saved on drop, if pipelines were compiled and the data changed.
#[derive(Debug)]
pub(super) struct PipelineCache {
    cache: wgpu::PipelineCache,
    key: PipelineKey,
    store: Rc<dyn PipelineStore>,
    /// Digest of the data that was loaded.
    loaded: Option<Digest>,
    /// Whether a pipeline was compiled.
    is_used: Cell<bool>,
}

impl PipelineCache {
    /// A cache with what the store has for this adapter. `None` if the device has no pipeline caches.
    pub(super) async fn open(
        device: &wgpu::Device,
        info: &wgpu::AdapterInfo,
        store: Rc<dyn PipelineStore>,
    ) -> Option<Self> {
        if !device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return None;
        }
        let key = PipelineKey::new(info)?;
        let sealed = store.load(&key).filter(|sealed| fits(sealed));
        let data = sealed.as_deref().and_then(|sealed| envelope::open(&key.digest, sealed));
        let (data, loaded) = data.unzip();
        let cache = create(device, data).await?;
        Some(Self { cache, key, store, loaded, is_used: Cell::new(false) })
    }

    /// The cache to compile a pipeline with.
    pub(super) fn handle(&self) -> wgpu::PipelineCache {
        self.is_used.set(true);
        self.cache.clone()
    }

    /// The data to load in a later run. `None` if the device is lost.
    pub(super) fn data(&self) -> Option<Vec<u8>> {
        let data = self.cache.get_data()?;
        Some(envelope::seal(&self.key.digest, &envelope::digest(&data), &data))
    }
}

impl Drop for PipelineCache {
    fn drop(&mut self) {
        let data = if self.is_used.get() { self.cache.get_data() } else { None };
        let Some(data) = data else { return };
        let digest = envelope::digest(&data);
        if self.loaded == Some(digest) {
            return;
        }
        let sealed = envelope::seal(&self.key.digest, &digest, &data);
        if fits(&sealed) {
            self.store.save(&self.key, &sealed);
        }
    }
}

fn fits(sealed: &[u8]) -> bool {
    sealed.len() <= MAX_PIPELINE_CACHE_BYTES
}

/// The driver's cache with this data; without it if the driver does not accept it.
#[expect(unsafe_code, reason = "wgpu cannot check that the data came from it")]
async fn create(device: &wgpu::Device, data: Option<&[u8]>) -> Option<wgpu::PipelineCache> {
    let scopes = [wgpu::ErrorFilter::Validation, wgpu::ErrorFilter::OutOfMemory]
        .map(|filter| device.push_error_scope(filter));
    let descriptor = wgpu::PipelineCacheDescriptor { label: Some("rullama"), data, fallback: true };
    // SAFETY: the data must come from `PipelineCache::get_data` of the same adapter. It was sealed by `envelope::seal`, for this adapter,
    // driver and version of the engine; `envelope::open` has checked that and a SHA-256 of the data, so no bit has changed since. A store
    // returns only what it was given, from a place that only the user can write to (the contract of `PipelineStore`; the program's store
    // is a file that must be the user's own); who can write there can replace the user's programs, too.
    let cache = unsafe { device.create_pipeline_cache(&descriptor) };
    let mut is_valid = true;
    for scope in scopes.into_iter().rev() {
        is_valid &= scope.pop().await.is_none();
    }
    is_valid.then_some(cache)
}

#[cfg(test)]
mod tests {
    use super::PipelineKey;

    fn info(backend: wgpu::Backend) -> wgpu::AdapterInfo {
        let mut info = wgpu::AdapterInfo::new(wgpu::DeviceType::DiscreteGpu, backend);
        (info.vendor, info.device) = (0x10de, 0x2335);
        (info.name, info.driver, info.driver_info) =
            ("a GPU".into(), "a driver".into(), "1.2".into());
        info
    }

    #[test]
    fn keys_tell_adapters_and_drivers_apart() {
        let key = PipelineKey::new(&info(wgpu::Backend::Vulkan)).expect("Vulkan has caches");
        let name = key.name();
        assert!(name.strip_prefix(key.adapter()).is_some_and(|hash| hash.len() == 17), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'), "{name}");
        assert_eq!(PipelineKey::new(&info(wgpu::Backend::Vulkan)), Some(key.clone()));
        let changed = |change: fn(&mut wgpu::AdapterInfo)| {
            let mut info = info(wgpu::Backend::Vulkan);
            change(&mut info);
            PipelineKey::new(&info).expect("Vulkan has caches")
        };
        let same_adapter: [fn(&mut wgpu::AdapterInfo); 3] = [
            |i| i.driver_info = "1.3".into(),
            |i| i.driver = "other".into(),
            |i| {
                i.name = "other".into();
            },
        ];
        for other in same_adapter.map(changed) {
            assert_eq!(other.adapter(), key.adapter());
            assert_ne!(other.name(), name);
        }
        let other_adapter: [fn(&mut wgpu::AdapterInfo); 2] = [|i| i.vendor = 1, |i| i.device = 1];
        for other in other_adapter.map(changed) {
            assert_ne!(other.adapter(), key.adapter());
        }
        assert_eq!(PipelineKey::new(&info(wgpu::Backend::Metal)), None);
    }
}
