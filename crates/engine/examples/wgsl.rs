//! Writes every kernel × variant in the browsers' dialect, with a list of constants and bindings: `wgsl DIR`.
//! `web/tools/check-wgsl.mjs` compiles them with a browser's compiler.

use std::{error::Error, fs, path::PathBuf};

use rullama_engine::{
    gpu::{Bind, Dialect, compose},
    suite::variants,
};
use serde_json::{Map, Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: wgsl DIR")?);
    // Files of an earlier run would be compiled, too.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let mut list: Vec<Value> = Vec::new();
    for (index, variant) in variants().iter().enumerate() {
        if !variant.is_in(Dialect::Browser) {
            continue;
        }
        let dispatch = &variant.dispatch;
        let file = format!("{index:04}-{}.wgsl", dispatch.kernel.name.replace('/', "-"));
        fs::write(folder.join(&file), compose(dispatch, Dialect::Browser))?;
        let constants: Map<String, Value> =
            dispatch.constants.iter().map(|(name, value)| ((*name).into(), json!(value))).collect();
        let written: Vec<bool> =
            dispatch.bindings.iter().map(|bind| matches!(bind, Bind::Write(_))).collect();
        list.push(json!({
            "file": file,
            "label": variant.label,
            "constants": constants,
            "written": written,
        }));
    }
    fs::write(folder.join("list.json"), serde_json::to_string_pretty(&list)?)?;
    Ok(())
}
