//! Temporary reader.
use std::collections::HashMap;

pub enum V { N(u64), S(Vec<String>), I(Vec<i64>) }

struct R<'a>(&'a [u8]);
impl R<'_> {
    fn n(&mut self, k: usize) -> u64 {
        let mut b = [0; 8];
        b[..k].copy_from_slice(&self.0[..k]);
        self.0 = &self.0[k..];
        u64::from_le_bytes(b)
    }
    fn s(&mut self) -> String {
        let n = self.n(8) as usize;
        let s = std::str::from_utf8(&self.0[..n]).unwrap().to_string();
        self.0 = &self.0[n..];
        s
    }
}
pub fn read(b: &[u8]) -> HashMap<String, V> {
    let mut r = R(&b[16..]);
    let mut m = HashMap::new();
    let size = |t| match t { 0 | 1 | 7 => 1, 2 | 3 => 2, 4..=6 => 4, _ => 8 };
    for _ in 0..r.n(8) {
        let k = r.s();
        let t = r.n(4);
        let v = match t {
            8 => V::S(vec![r.s()]),
            9 => {
                let t = r.n(4);
                let n = r.n(8);
                if t == 8 { V::S((0..n).map(|_| r.s()).collect()) } else { V::I((0..n).map(|_| r.n(size(t)) as i64).collect()) }
            }
            t => V::N(r.n(size(t))),
        };
        m.insert(k, v);
    }
    m
}
