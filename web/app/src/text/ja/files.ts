import type { files as source } from "../en/files.js";
import type { Translation } from "../catalogue.js";

export const files: Translation<typeof source> = {
  "import.conversation": "チャット {number}",
  "import.turn": "チャット {number}、メッセージ {turn}",
  "import.field": "{where}: `{field}`",
  "import.file": "ファイル",
  "import.notJson": "有効な JSON ではありません。",
  "import.cut": "有効な JSON ではありません: ファイルが途中で終わっています。",
  "import.notObjectFile": "有効な JSON ではありません: オブジェクトである必要があります。",
  "import.bracket": "有効な JSON ではありません: 閉じ括弧に対応する開き括弧がありません。",
  "import.foreign": "このファイルは rullama でエクスポートされたものではありません。",
  "import.unknown":
    "このファイルには rullama が読めるチャットがありません。rullama、ChatGPT、Open WebUI、llama.cpp のエクスポートをインポートできます。",
  "import.tooLarge": "ファイルが 300 MB を超えています。",
  "import.version": "ファイルのバージョンは {found} ですが、このアプリが読めるのは {known} です。",
  "import.deep": "このファイルは入れ子が深すぎます。",
  "import.long": "チャット {number} のテキストが 64 MB を超えています。",
  "import.twice": "{where}: ID `{id}` が重複しています。",
  "import.missing": "{where} が参照するメッセージはファイルにありません。",
  "import.loop": "{where}: メッセージが互いに返信し合っています。",
  "import.notMedia": "{where}: 添付ファイルの `data` は base64 の画像、音声、動画である必要があります。",
  "import.notBase64": "{where}: 添付ファイルが有効な base64 ではありません。",
  "import.attachmentSize": "{where}: 添付ファイルが 20 MB を超えています。",
  "import.object": "{where} はオブジェクトである必要があります。",
  "import.list": "{where} はリストである必要があります。",
  "import.text": "{where} はテキストである必要があります。",
  "import.time": "{where} はミリ秒単位の時刻である必要があります。",
  "import.oneOf": "{where} は {allowed} のいずれかである必要があります。",
};
