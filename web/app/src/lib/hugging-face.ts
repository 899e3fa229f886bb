// Files of Hugging Face, under the names of this app.

import { type HubFile as Offered, type HubPlace as Place, hubFiles, hubPlace, splitPart } from "rullama/catalogue";

export {
  type HubFile as Offered,
  type HubPlace as Place,
  hubAddress as addressOf,
  isProjector,
} from "rullama/catalogue";

/** What a text names at Hugging Face, with or without the host; undefined where it is something else. */
export const placeOf = (text: string): Place | undefined => hubPlace(text, true);

/** Parts of a split model are read from their first one. */
export const isLaterPart = (path: string): boolean => (splitPart(path)?.part ?? 1) > 1;

/** The GGUF files of a repository, those of the wanted quantisation first. */
export const filesOf = (place: Place, signal?: AbortSignal): Promise<Offered[]> => hubFiles(place, undefined, signal);
