import type { failures as source } from "../en/failures.js";
import type { Translation } from "../catalogue.js";

export const failures: Translation<typeof source> = {
  "failure.no_webgpu.title": "WebGPU ist in diesem Browser nicht verfügbar",
  "failure.no_webgpu.text":
    "Dieses Modell braucht eine GPU, die Browser über WebGPU anbieten: Auf der CPU laufen nur kleine Modelle.",
  "failure.no_webgpu.advice":
    "Verwende eine aktuelle Version von Chrome, Edge, Safari oder Firefox und prüfe, ob WebGPU in den Einstellungen ausgeschaltet ist.",
  "failure.no_webgpu.action": "Dieses Gerät prüfen",
  "failure.no_webgpu.training":
    "Training braucht eine GPU, die Browser über WebGPU anbieten: Auf der CPU läuft es nicht.",
  "failure.no_webgpu.insecure":
    "Öffne diese Seite über https:// oder http://localhost: Andere Seiten dürfen die GPU nicht verwenden.",
  "failure.no_webgpu.unsupported":
    "Dieser Browser hat kein WebGPU, oder es ist in den Einstellungen ausgeschaltet. Verwende eine aktuelle Version von Chrome, Edge, Safari oder Firefox.",
  "failure.no_webgpu.no_adapter":
    "Dieser Browser hat WebGPU, bietet aber keine GPU an. Schalte in den Einstellungen die Hardwarebeschleunigung ein oder aktualisiere den GPU-Treiber.",
  "failure.device_lost.title": "Die Verbindung zur GPU wurde unterbrochen",
  "failure.device_lost.text":
    "Das passiert, wenn der Treiber neu startet, der Computer schläft oder der Speicher ausgeht. Alles bisher Geschriebene ist gespeichert.",
  "failure.device_lost.advice":
    "Lade das Modell neu. Wenn es wieder passiert, schließe andere Programme, die die GPU verwenden.",
  "failure.device_lost.action": "Modell neu laden und fortfahren",
  "failure.interrupted.title": "Der Tab, in dem das Modell lief, wurde geschlossen",
  "failure.interrupted.text": "Das Modell lief in jenem Tab.",
  "failure.interrupted.advice": "Lade das Modell neu: Dieser Tab übernimmt.",
  "failure.interrupted.action": "Modell neu laden und fortfahren",
  "failure.out_of_memory.title": "Der GPU-Speicher ist voll",
  "failure.out_of_memory.text": "Andere Tabs und Programme belegen vielleicht GPU-Speicher.",
  "failure.out_of_memory.advice": "Schließe sie, oder verwende einen kleineren Kontext oder ein kleineres Modell.",
  "failure.out_of_memory.action": "Kontext verkleinern",
  "failure.does_not_fit.title": "Dieses Modell ist zu groß für diese GPU",
  "failure.does_not_fit.text": "Es braucht mehr Speicher, als die GPU hat, und wurde daher nicht geladen.",
  "failure.does_not_fit.advice":
    "Wähle ein kleineres Modell oder eine kleinere Quantisierung, oder verkleinere den Kontext in den Einstellungen.",
  "failure.does_not_fit.action": "Kleineres Modell auswählen",
  "failure.does_not_fit.trainingTitle": "Dieses Training ist zu groß für diese GPU",
  "failure.does_not_fit.training":
    "Das Training braucht mehr GPU-Speicher, als vorhanden ist, und wurde daher nicht gestartet.",
  "failure.does_not_fit.trainingAdvice": "Verwende kürzere Sequenzen, einen niedrigeren Rang oder weniger Zielmodule.",
  "failure.not_found.title": "Modell nicht gefunden",
  "failure.not_found.text":
    "Es ist weder in diesem Browser noch auf dem Server. Vielleicht wurde es umbenannt oder gelöscht.",
  "failure.not_found.advice": "Prüfe den Namen, oder wähle ein Modell aus der Liste.",
  "failure.not_found.action": "Modell auswählen",
  "failure.not_found.similar": "Meintest du {names}? Prüfe den Namen, oder wähle ein Modell aus der Liste.",
  "failure.network.title": "Der Server ist nicht erreichbar",
  "failure.network.text": "Die Verbindung ist fehlgeschlagen. Bereits Heruntergeladenes bleibt erhalten.",
  "failure.network.advice":
    "Prüfe die Internetverbindung und versuche es erneut: Ein Download wird dort fortgesetzt, wo er aufgehört hat.",
  "failure.network.action": "Erneut versuchen",
  "failure.network.offline": "Dieses Gerät ist offline. Bereits Heruntergeladenes bleibt erhalten.",
  "failure.network.offlineAdvice":
    "Stelle eine Internetverbindung her und versuche es erneut. In diesem Browser gespeicherte Modelle funktionieren offline.",
  "failure.network.refused": "Der Server hat den Zugriff verweigert (Status {status}).",
  "failure.network.refusedAdvice":
    "Die Datei ist vielleicht privat, oder ihre Lizenz muss erst angenommen werden: Melde dich beim Server an, lade die Datei herunter und öffne sie vom Datenträger.",
  "failure.network.busy": "Der Server hat zu viele Anfragen erhalten (Status {status}).",
  "failure.network.busyAdvice": "Warte ein paar Minuten und versuche es dann erneut.",
  "failure.network.broken": "Der Server hat ein Problem (Status {status}). Bereits Heruntergeladenes bleibt erhalten.",
  "failure.network.brokenAdvice": "Versuche es später erneut.",
  "failure.network.answered": "Der Server hat mit Status {status} geantwortet.",
  "failure.network.answeredAdvice": "Prüfe die Adresse und versuche es erneut.",
  "failure.no_ranges.title": "Der Server unterstützt keine Range-Anfragen",
  "failure.no_ranges.text": "Modelle werden in Teilen heruntergeladen, was dieser Server nicht erlaubt.",
  "failure.no_ranges.advice": "Lade die Datei herunter und öffne sie vom Datenträger.",
  "failure.no_ranges.action": "Datei öffnen",
  "failure.file_changed.title": "Die Datei hat sich während des Ladens geändert",
  "failure.file_changed.text":
    "Server oder Datenträger haben jetzt eine andere Version; das bereits Gelesene ist nicht verwendbar.",
  "failure.file_changed.advice": "Beginne neu, um die neue Version zu lesen.",
  "failure.file_changed.action": "Neu beginnen",
  "failure.checksum.title": "Der Download ist beschädigt",
  "failure.checksum.text": "Seine Prüfsumme stimmt nicht, daher wurde er verworfen.",
  "failure.checksum.advice":
    "Lade ihn erneut herunter. Schlägt es wieder fehl, verwende eine andere Quelle: Die Datei auf dem Server ist beschädigt.",
  "failure.checksum.action": "Erneut herunterladen",
  "failure.unverified.title": "Der Download kann nicht überprüft werden",
  "failure.unverified.text":
    "Die Prüfsumme wird beim Speichern überprüft, und dieser Browser speichert nichts: Es ist in den Einstellungen ausgeschaltet, dies ist ein privates Fenster, oder der Datenträger ist voll.",
  "failure.unverified.advice":
    "Schalte das Behalten von Downloads in den Einstellungen ein, verwende ein normales Fenster oder schaffe Platz, und lade das Modell dann erneut.",
  "failure.unverified.action": "Speicher anzeigen",
  "failure.quota.title": "Nicht genug Browser-Speicher für dieses Modell",
  "failure.quota.text": "Browser begrenzen, was eine Seite speichern darf.",
  "failure.quota.advice":
    "Lösche nicht mehr benötigte Modelle, oder schalte das Behalten von Downloads in den Einstellungen aus.",
  "failure.quota.action": "Platz schaffen",
  "failure.quota.space": "{needed} müssen noch gespeichert werden, der Browser erlaubt aber nur {free}.",
  "failure.storage.title": "Der Browser-Speicher funktioniert nicht",
  "failure.storage.text":
    "Vielleicht verwendet ein anderer Tab dasselbe Modell, oder dies ist ein privates Fenster ohne Speicher.",
  "failure.storage.advice":
    "Schließe andere Tabs dieser App, oder verwende ein normales Fenster, und versuche es dann erneut.",
  "failure.storage.action": "Speicher anzeigen",
  "failure.bad_file.title": "Diese Datei kann nicht gelesen werden",
  "failure.bad_file.text": "Sie ist kein GGUF-Modell oder beschädigt.",
  "failure.bad_file.advice": "Lade sie erneut herunter, oder wähle eine andere Datei.",
  "failure.bad_file.action": "Andere Datei auswählen",
  "failure.unsupported_model.title": "Dieses Modell wird nicht unterstützt",
  "failure.unsupported_model.text": "rullama führt Modelle der Familien Gemma, Llama und Qwen aus.",
  "failure.unsupported_model.advice":
    "Wähle ein Modell einer dieser Familien; die Seite „Modelle“ nennt einige, die gut laufen.",
  "failure.unsupported_model.action": "Anderes Modell auswählen",
  "failure.projector.title": "Diese Datei ist nur ein Teil eines Modells",
  "failure.projector.text": "Sie enthält die Bild- und Audio-Encoder (mmproj).",
  "failure.projector.advice":
    "Öffne zuerst das Modell und lege dann diese Datei auf der Seite ab, oder wähle beide zusammen aus.",
  "failure.projector.action": "Zugehöriges Modell auswählen",
  "failure.context_full.title": "Der Kontext ist voll",
  "failure.context_full.text": "Prompt und Antwort zusammen überschreiten den Kontext des Modells.",
  "failure.context_full.advice":
    "Lass die ältesten Nachrichten aus: Sie bleiben im Chat, aber das Modell sieht sie nicht.",
  "failure.context_full.action": "Ohne die ältesten Nachrichten antworten",
  "failure.context_full.larger": "Größeren Kontext wählen",
  "failure.context_full.enlarge": "Mit {context} Token Kontext neu laden",
  "failure.context_full.enlargeText":
    "Diese Nachricht hat etwa {needed} Token, der Kontext ist aber auf {context} eingestellt.",
  "failure.context_full.enlargeAdvice":
    "Lade das Modell mit einem größeren Kontext neu, was mehr GPU-Speicher braucht.",
  "failure.context_full.shorten":
    "Diese Nachricht hat etwa {needed} Token, mehr als die {context}, die dieses Modell lesen kann.",
  "failure.context_full.shortenAdvice": "Kürze sie oder teile sie auf.",
  "failure.bad_options.title": "Eine Einstellung ist ungültig",
  "failure.bad_options.text": "Die Engine hat eine der Einstellungen abgelehnt.",
  "failure.bad_options.advice": "Prüfe die Einstellungen, oder setze sie auf die Standardwerte des Modells zurück.",
  "failure.bad_options.action": "Einstellungen öffnen",
  "failure.bad_media.title": "Ein Anhang kann nicht verwendet werden",
  "failure.bad_media.text": "Er kann nicht dekodiert werden, ist zu lang, oder dieses Modell unterstützt ihn nicht.",
  "failure.bad_media.advice":
    "Bearbeite die Nachricht, um ihn zu entfernen, oder lass das Modell ohne Anhänge antworten.",
  "failure.bad_media.action": "Ohne Anhänge antworten",
  "failure.bad_adapter.title": "Dieser Adapter kann nicht verwendet werden",
  "failure.bad_adapter.text": "Er ist beschädigt, für ein anderes Modell gemacht oder wurde gelöscht.",
  "failure.bad_adapter.advice": "Lade das Modell, für das er gemacht ist, oder wähle einen anderen Adapter.",
  "failure.bad_adapter.action": "Adapter anzeigen",
  "failure.bad_adapter.misfits": {
    one: "Er ist für ein anderes Modell gemacht: {count} seiner Tensoren passt nicht.",
    other: "Er ist für ein anderes Modell gemacht: {count} seiner Tensoren passen nicht.",
  },
  "failure.bad_data.title": "Diese Daten können nicht zum Training verwendet werden",
  "failure.bad_data.text": "Jede Zeile muss ein JSON-Beispiel mit Text zum Trainieren sein.",
  "failure.bad_data.advice": "Korrigiere die Daten und starte erneut.",
  "failure.bad_data.action": "Daten anzeigen",
  "failure.bad_data.line":
    "Zeile {line} ist kein Beispiel: Jede Zeile muss ein JSON-Beispiel mit Text zum Trainieren sein.",
  "failure.bad_checkpoint.title": "Dieses Training kann nicht fortgesetzt werden",
  "failure.bad_checkpoint.text":
    "Sein Checkpoint ist beschädigt oder gehört zu einem anderen Modell oder anderen Einstellungen.",
  "failure.bad_checkpoint.advice": "Lade das Modell, zu dem es gehört, oder verwirf es und trainiere erneut.",
  "failure.bad_checkpoint.action": "Trainings anzeigen",
  "failure.diverged.title": "Training divergiert",
  "failure.diverged.text": "Der Verlust ist keine Zahl mehr.",
  "failure.diverged.advice": "Verwende eine niedrigere Lernrate oder weniger Schritte.",
  "failure.diverged.action": "Einstellungen ändern",
  "failure.cancelled.title": "Gestoppt",
  "failure.cancelled.text": "Dies wurde vor dem Ende gestoppt.",
  "failure.cancelled.advice": "Starte es erneut, wenn du es noch brauchst.",
  "failure.cancelled.action": "Erneut versuchen",
  "failure.freed.title": "Das Modell ist nicht mehr geladen",
  "failure.freed.text": "Es wurde in der Zwischenzeit entladen.",
  "failure.freed.advice": "Lade es erneut, um fortzufahren.",
  "failure.freed.action": "Erneut laden",
  "failure.internal.title": "In rullama ist ein Fehler aufgetreten",
  "failure.internal.text": "Das ist ein Fehler in rullama. Deine Chats sind sicher.",
  "failure.internal.advice": "Lade die Seite neu. Wenn es wieder passiert, melde es bitte mit den technischen Details.",
  "failure.internal.action": "Seite neu laden",
  "failure.detail": "Technische Details",
};
