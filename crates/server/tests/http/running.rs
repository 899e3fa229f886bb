//! A server with a store of its own. It stops when dropped.

use std::{net::SocketAddr, thread};

use rullama_gguf::Writer;
use rullama_server::{Options, Server};
use rullama_store::Digest;
use rullama_testkit::StoreFolder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{runtime::Runtime, sync::oneshot};

use crate::client::{Answer, ask, send};

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) store: StoreFolder,
    pub(crate) folder: TempDir,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Running {
    /// A server of an empty store.
    pub(crate) fn start() -> Self {
        Self::with(|_| {})
    }

    /// A server of an empty store and these options.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let folder = TempDir::new().unwrap();
        let store = StoreFolder::new(&folder.path().join("store"));
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.stores = vec![folder.path().join("no-store"), store.root().to_owned()];
        change(&mut options);
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::bind(options)).unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            let stopped = async { stopped.await.unwrap_or(()) };
            runtime.block_on(server.run(stopped)).unwrap();
        });
        Self { address, store, folder, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[])
    }

    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        ask(self.address, method, path, headers)
    }

    /// Sends JSON.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, &[], body.to_string().as_bytes())
    }

    pub(crate) fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        send(self.address, method, path, headers, body)
    }

    /// The models of the list.
    pub(crate) fn models(&self) -> Vec<Value> {
        let answer = self.get("/rullama/models");
        assert_eq!(answer.status, 200);
        answer.json()["models"].as_array().unwrap().clone()
    }

    /// Adds a model with these weights alone; gives the path of its blob.
    pub(crate) fn add(&self, name: &str, weights: &[u8]) -> String {
        self.add_layers(name, &[self.store.blob("model", weights)]);
        blob_path(weights)
    }

    pub(crate) fn add_layers(&self, name: &str, layers: &[Value]) {
        let config = self.store.blob("config", r#"{"model_format":"gguf"}"#);
        self.store.manifest(name, &json!({ "config": config, "layers": layers }));
    }

    /// Requests an end without waiting for it.
    pub(crate) fn stop(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) fn wait(&mut self) {
        self.thread.take().unwrap().join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

pub(crate) fn blob_path(content: &[u8]) -> String {
    format!("/rullama/blobs/sha256-{}", Digest::of(content).hex())
}

/// A model file of some architecture; `name` makes it different from others.
pub(crate) fn weights(architecture: &str, name: &str) -> Vec<u8> {
    let file = Writer::new().kv("general.architecture", architecture).kv("general.name", name);
    file.kv(format!("{architecture}.context_length"), 4096u32).finish().unwrap()
}
