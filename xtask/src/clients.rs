//! Real clients of npm and PyPI against `rullama serve` with the demo model.

use anyhow::{Result, bail};

use crate::{
    command::{root, say, sh_with},
    python,
    serving::Serving,
    test::program,
};

/// Lists of packages that go together, and their tests.
const PYTHON: [(&str, &[&str]); 2] = [
    ("requirements.txt", &["test_clients.py", "test_langchain_standard.py"]),
    ("requirements-litellm.txt", &["test_litellm.py"]),
];

/// Installs the clients where they are missing, starts a server on the CPU and runs their tests.
pub(crate) fn clients(options: &[&str]) -> Result<()> {
    let (node, python) = match options {
        [] => (true, true),
        ["node"] => (true, false),
        ["python"] => (false, true),
        ["quick"] => return quick(),
        _ => bail!("usage: cargo xtask clients [node | python | quick]"),
    };
    let serving = serving()?;
    let url = [("RULLAMA_URL", serving.url.clone())];
    if node {
        npm("test", &serving)?;
    }
    if python {
        let folder = root().join("clients/python");
        for (list, tests) in PYTHON {
            let pytest = [&["-m", "pytest", "-q"], tests].concat();
            let name = list.trim_end_matches(".txt");
            let python = python::installed(name, &format!("clients/python/{list}"))?;
            sh_with(&folder, &url, &python, &pytest)?;
        }
    }
    say("all clients understand the server");
    Ok(())
}

/// A few requests of every client of npm, which CI has time for: text, streams and tools.
pub(crate) fn quick() -> Result<()> {
    npm("quick", &serving()?)
}

fn serving() -> Result<Serving> {
    let models = [("embedder", "embedding/first-BF16.gguf")];
    Serving::start(&program()?, &models, &["--device", "cpu"])
}

/// Runs a script of the npm clients.
fn npm(script: &str, serving: &Serving) -> Result<()> {
    let folder = root().join("clients/node");
    sh_with(&folder, &[], "npm", &["ci", "--no-audit", "--no-fund"])?;
    sh_with(&folder, &[("RULLAMA_URL", serving.url.clone())], "npm", &["run", script])
}
