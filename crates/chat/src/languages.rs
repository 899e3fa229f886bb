//! English names of the languages that TranslateGemma was trained on.

use crate::ChatError;

/// Codes and names, alternating.
const NAMES: &str = "ar Arabic,bg Bulgarian,bn Bengali,ca Catalan,cs Czech,da Danish,de German,el Greek,en English,\
es Spanish,et Estonian,fa Persian,fi Finnish,fil Filipino,fr French,gu Gujarati,he Hebrew,hi Hindi,hr Croatian,\
hu Hungarian,id Indonesian,is Icelandic,it Italian,ja Japanese,kn Kannada,ko Korean,lt Lithuanian,lv Latvian,\
ml Malayalam,mr Marathi,nl Dutch,no Norwegian,pa Punjabi,pl Polish,pt Portuguese,ro Romanian,ru Russian,sk Slovak,\
sl Slovenian,sr Serbian,sv Swedish,sw Swahili,ta Tamil,te Telugu,th Thai,tr Turkish,uk Ukrainian,ur Urdu,\
vi Vietnamese,zh Chinese,zu Zulu";

/// The name of the language with this code; a region after `-` or `_` is ignored.
pub(crate) fn language(code: &str) -> Result<&'static str, ChatError> {
    let wanted = code.split(['-', '_']).next().unwrap_or_default();
    let mut pairs = NAMES.split(',').filter_map(|pair| pair.split_once(' '));
    let found = pairs.find(|(known, _)| known.eq_ignore_ascii_case(wanted));
    let unknown = || ChatError::UnknownLanguage { code: code.chars().take(32).collect() };
    found.map(|(_, name)| name).ok_or_else(unknown)
}
