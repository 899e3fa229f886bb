import type { Translation } from "../catalogue.js";
import type { documents as source } from "../en/documents.js";

export const documents: Translation<typeof source> = {
  "attach.documents": "Dokumente",
  "attach.documentsLabel": "Dokumente anhängen",
  "document.reading": "{name} wird gelesen…",
  "document.open": "{name} anzeigen",
  "document.view": "Dokument {name}",
  "document.text": "Text des Dokuments",
  "document.page": "Seite {page}",
  "document.part": "Es wird nur ein Teil des Dokuments angezeigt.",
  "document.gone": "Das Dokument wurde gelöscht. Nur die zitierte Stelle ist noch da.",
  "document.searched": "zu lang für den Kontext: passende Stellen werden verwendet",
  "document.embedding": "Dokumente werden durchsucht: {done} von {total} Abschnitten eingebettet…",
  "document.tooLong": "{name} enthält mehr als {most} Zeichen Text.",
  "document.noText": "{name} enthält keinen Text, nur Bilder. Hänge die Seiten als Bilder an.",
  "document.notText": "{name} ist keine Textdatei.",
  "document.noReader":
    "Der PDF-Leser konnte nicht geladen werden, daher lässt sich {name} nicht lesen. Prüfe die Verbindung und versuche es erneut.",
  "document.pdf.broken": "{name} ist beschädigt oder keine PDF-Datei.",
  "document.pdf.password":
    "{name} ist durch ein Passwort geschützt. Speichere eine Kopie ohne Passwort und hänge diese an.",
  "document.pdf.pages": "{name} hat mehr als 3.000 Seiten.",
  "document.pdf.slow": "{name} zu lesen dauert zu lange.",
  "document.pdf.long": "{name} enthält zu viel Text zum Anhängen.",
  "source.title": "Quellen",
  "source.open": "Quelle {number}",
  "source.none": "In den Dokumenten wurden keine passenden Stellen gefunden.",
  "source.keywords": "Nach Wörtern gesucht, weil kein Embedding-Modell geladen ist.",
  "embedder.offer":
    "Für die Suche nach Bedeutung brauchst du ein Embedding-Modell: {size} Download, {memory} GPU-Speicher neben dem Chat-Modell.",
  "embedder.get": "{name} laden",
  "embedder.memory": "{name} belegt {size} GPU-Speicher.",
  "embedder.both": "Beide Modelle zusammen: {size}.",
  "library.title": "Sammlungen",
  "library.help":
    "Dokumente, die in diesem Browser gespeichert bleiben. Jeder Chat kann eine Sammlung nutzen: Wähle sie im Chat unter Werkzeuge.",
  "library.first": "Meine Dokumente",
  "library.choose": "Sammlung",
  "library.contents": "Dokumente dieser Sammlung",
  "library.name": "Name einer neuen Sammlung",
  "library.create": "Sammlung anlegen",
  "library.delete": "Sammlung löschen",
  "library.deleteAsk": "„{name}“ löschen?",
  "library.deleteText": {
    one: "{count} Dokument wird mit gelöscht. Chats behalten die Stellen, die sie zitiert haben.",
    other: "{count} Dokumente werden mit gelöscht. Chats behalten die Stellen, die sie zitiert haben.",
  },
  "library.deleted": "„{name}“ gelöscht.",
  "library.documents": { one: "{count} Dokument", other: "{count} Dokumente" },
  "library.none": "Es gibt noch keine Sammlungen. Lege auf der Suchseite eine an.",
  "library.manage": "Sammlungen verwalten",
};
