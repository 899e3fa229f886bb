// The package's catalogue, under the names of this app, and what is said of the demo model.

export {
  type Ability,
  type CatalogueModel as KnownModel,
  CATALOGUE as KNOWN,
  RECOMMENDED as FIRST,
} from "rullama/catalogue";

/** Whether a name is that of the demo model. */
export const isDemo = (name: string): boolean => /^demo(?::|$)/u.test(name);

/** What the demo model was trained to answer. It knows English alone, so these are never translated. */
export const DEMO_PROMPTS = [
  "What is 23 + 45?",
  "What is the capital of France?",
  "Spell the word lamp.",
  "What can you do?",
] as const;
