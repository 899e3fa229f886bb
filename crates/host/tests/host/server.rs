//! A server with the demo model, on the CPU.

use std::{net::SocketAddr, path::PathBuf, rc::Rc, sync::Arc, thread, time::Duration};

use rullama::{DeviceChoice, OpenOptions};
use rullama_gguf::{Gguf, StringArray, Writer};
use rullama_host::{Host, HostOptions};
use rullama_server::{Options, PlainFile, Server};
use rullama_source::MemorySource;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::{runtime::Runtime, sync::oneshot};

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    _files: [NamedTempFile; 3],
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Random models of all families that the runtime knows.
pub(crate) const FAMILIES: [(&str, &str); 6] = [
    ("gemma4", "gguf/micro-e2b-Q8_0.gguf"),
    ("gemma3", "gguf/micro-g3-Q4_0.gguf"),
    ("llama3", "gguf/micro-llama3-Q8_0.gguf"),
    ("smollm2", "gguf/micro-llama-Q4_1.gguf"),
    ("qwen2", "gguf/micro-qwen2-Q8_0.gguf"),
    ("qwen3", "gguf/micro-qwen3-Q8_0.gguf"),
];

/// A file of the reference data.
pub(crate) fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../goldens").join(name)
}

/// A Gemma 3 without its template: its vocabulary then shows that it is a FunctionGemma.
fn function_gemma() -> Vec<u8> {
    let mut bytes = std::fs::read(golden("gguf/micro-g3-Q4_0.gguf")).unwrap();
    let key = b"tokenizer.chat_template";
    let at = bytes.windows(key.len()).position(|bytes| bytes == key).unwrap();
    bytes[at + key.len() - 1] = b'_';
    bytes
}

/// A Gemma 3 of MedGemma's name, with the tokens of its thoughts in place of FunctionGemma's and without a template; and its tokens.
pub(crate) fn med_gemma() -> (Vec<u8>, Vec<String>) {
    let bytes = std::fs::read(golden("gguf/micro-g3-Q4_0.gguf")).unwrap();
    let source = Rc::new(MemorySource::new("micro-g3", bytes));
    let gguf = pollster::block_on(Gguf::open(source)).unwrap();
    let tokens = gguf.strings("tokenizer.ggml.tokens").unwrap().iter().map(|token| match token {
        "<start_function_declaration>" => "<unused94>".to_owned(),
        "<end_function_declaration>" => "<unused95>".to_owned(),
        token => token.to_owned(),
    });
    let tokens: Vec<String> = tokens.collect();
    let mut file = Writer::new();
    for entry in gguf.metadata() {
        let value = match entry.key.as_str() {
            "tokenizer.chat_template" => continue,
            "general.name" => "MedGemma Micro".into(),
            "tokenizer.ggml.tokens" => tokens.iter().collect::<StringArray>().into(),
            _ => entry.value.clone(),
        };
        file = file.kv(entry.key.as_str(), value);
    }
    for tensor in gguf.tensors() {
        let bytes = pollster::block_on(gguf.read(tensor, 0..tensor.nbytes())).unwrap().to_vec();
        file = file.tensor(tensor.name(), tensor.dims(), tensor.dtype(), bytes);
    }
    (file.finish().unwrap(), tokens)
}

impl Running {
    /// Serves the demo model as `demo` and `twin`, an embedding model, a diffusion model, and small models of every family.
    pub(crate) fn start(change: impl FnOnce(&mut HostOptions)) -> Self {
        let files = [rullama::demo_gguf().unwrap(), function_gemma(), med_gemma().0];
        let files = files.map(|bytes| {
            let file = NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            file
        });
        let [demo, functions, medical] = &files;
        let open = OpenOptions { device: DeviceChoice::Cpu, ..OpenOptions::default() };
        let mut host = HostOptions { open, ..HostOptions::default() };
        change(&mut host);
        let host = Arc::new(Host::new(host));
        let mut options = Options::new("127.0.0.1:0".parse().unwrap());
        options.engine = Some(Arc::clone(&host) as _);
        options.limits.drain = Duration::from_millis(100);
        let file = |name: &str, path: PathBuf| PlainFile { name: name.into(), path };
        let small = FAMILIES.map(|(name, path)| file(name, golden(path)));
        options.files = vec![
            file("demo", demo.path().into()),
            file("twin", demo.path().into()),
            file("functiongemma", functions.path().into()),
            file("medgemma", medical.path().into()),
            file("embedder", golden("embedding/first-BF16.gguf")),
            file("diffusion", golden("diffusion/micro-diffusion-BF16.gguf")),
        ];
        options.files.extend(small);
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::bind(options)).unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime.block_on(server.run(async { stopped.await.unwrap_or(()) })).unwrap();
            host.close(Duration::from_secs(20));
        });
        Self { address, _files: files, stop: Some(stop), thread: Some(thread) }
    }

    pub(crate) fn get(&self, path: &str) -> Value {
        let mut answer = ureq::get(format!("http://{}{path}", self.address)).call().unwrap();
        serde_json::from_str(&answer.body_mut().read_to_string().unwrap()).unwrap()
    }

    /// Status and text of the answer.
    pub(crate) fn send(&self, path: &str, body: &Value) -> (u16, String) {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer =
            agent.post(format!("http://{}{path}", self.address)).send(body.to_string()).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        let (status, text) = self.send(path, body);
        assert_eq!(status, 200, "{path}: {text}");
        serde_json::from_str(&text).unwrap()
    }

    /// A chat completion of one message with these fields.
    #[track_caller]
    pub(crate) fn chat(&self, text: &str, more: Value) -> Value {
        self.post("/v1/chat/completions", &request(text, more))
    }
}

/// A request in OpenAI's shape, at temperature 0 and without a thought.
pub(crate) fn request(text: &str, more: Value) -> Value {
    let mut request = json!({
        "model": "demo", "messages": [{ "role": "user", "content": text }], "temperature": 0,
        "reasoning_effort": "none", "max_tokens": 60,
    });
    let Value::Object(more) = more else { panic!("{more} is no object") };
    for (name, value) in more {
        request[name] = value;
    }
    request
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}
