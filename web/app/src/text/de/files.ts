import type { files as source } from "../en/files.js";
import type { Translation } from "../catalogue.js";

export const files: Translation<typeof source> = {
  "import.conversation": "Chat {number}",
  "import.turn": "Chat {number}, Nachricht {turn}",
  "import.field": "{where}: `{field}`",
  "import.file": "Die Datei",
  "import.notJson": "Das ist kein gültiges JSON.",
  "import.cut": "Das ist kein gültiges JSON: Die Datei endet mittendrin.",
  "import.notObjectFile": "Das ist kein gültiges JSON: Es sollte ein Objekt sein.",
  "import.bracket": "Das ist kein gültiges JSON: Zu einer schließenden Klammer fehlt die öffnende.",
  "import.foreign": "Diese Datei wurde nicht von rullama exportiert.",
  "import.unknown":
    "Diese Datei enthält keine Chats, die rullama lesen kann. Importiert werden Exporte von rullama, ChatGPT, Open WebUI und llama.cpp.",
  "import.tooLarge": "Die Datei ist größer als 300 MB.",
  "import.version": "Die Datei hat Version {found}; diese App liest Version {known}.",
  "import.deep": "Diese Datei ist zu tief verschachtelt.",
  "import.long": "Chat {number} hat mehr als 64 MB Text.",
  "import.twice": "{where}: Die ID `{id}` kommt zweimal vor.",
  "import.missing": "{where} verweist auf eine Nachricht, die nicht in der Datei ist.",
  "import.loop": "{where}: Nachrichten antworten im Kreis aufeinander.",
  "import.notMedia": "{where}: `data` eines Anhangs sollte ein Bild, Audio oder Video in Base64 sein.",
  "import.notBase64": "{where}: Ein Anhang ist kein gültiges Base64.",
  "import.attachmentSize": "{where}: Ein Anhang ist größer als 20 MB.",
  "import.object": "{where} sollte ein Objekt sein.",
  "import.list": "{where} sollte eine Liste sein.",
  "import.text": "{where} sollte Text sein.",
  "import.time": "{where} sollte eine Zeit in Millisekunden sein.",
  "import.oneOf": "{where} sollte eines von {allowed} sein.",
};
