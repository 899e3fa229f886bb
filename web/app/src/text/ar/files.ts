import type { files as source } from "../en/files.js";
import type { Translation } from "../catalogue.js";

export const files: Translation<typeof source> = {
  "import.conversation": "المحادثة {number}",
  "import.turn": "المحادثة {number}، الرسالة {turn}",
  "import.field": "{where}: `{field}`",
  "import.file": "الملف",
  "import.notJson": "هذا ليس JSON صالحًا.",
  "import.cut": "هذا ليس JSON صالحًا: ينتهي الملف في منتصفه.",
  "import.notObjectFile": "هذا ليس JSON صالحًا: ينبغي أن يكون كائنًا.",
  "import.bracket": "هذا ليس JSON صالحًا: قوس إغلاق بلا قوس فتح.",
  "import.foreign": "لم يُصدَّر هذا الملف من rullama.",
  "import.unknown":
    "لا يحتوي هذا الملف على محادثات يمكن لـ rullama قراءتها. يمكن استيراد ملفات rullama وChatGPT وOpen WebUI وllama.cpp.",
  "import.tooLarge": "الملف أكبر من 300 ميغابايت.",
  "import.version": "إصدار الملف {found}؛ وهذا التطبيق يقرأ الإصدار {known}.",
  "import.deep": "تداخل هذا الملف عميق جدًا.",
  "import.long": "نص المحادثة {number} يتجاوز 64 ميغابايت.",
  "import.twice": "{where}: المعرّف `{id}` مكرر.",
  "import.missing": "يشير {where} إلى رسالة غير موجودة في الملف.",
  "import.loop": "{where}: رسائلها ترد على بعضها في حلقة.",
  "import.notMedia": "{where}: ينبغي أن يكون `data` في المرفق صورة أو صوتًا أو فيديو بترميز base64.",
  "import.notBase64": "{where}: أحد المرفقات ليس base64 صالحًا.",
  "import.attachmentSize": "{where}: أحد المرفقات أكبر من 20 ميغابايت.",
  "import.object": "ينبغي أن يكون {where} كائنًا.",
  "import.list": "ينبغي أن يكون {where} قائمة.",
  "import.text": "ينبغي أن يكون {where} نصًا.",
  "import.time": "ينبغي أن يكون {where} وقتًا بالملي ثانية.",
  "import.oneOf": "ينبغي أن يكون {where} واحدًا من {allowed}.",
};
