// Before all tests: what several of them need and only one may build.
import { builtApp } from "./app/build.ts";

export default function setup(): void {
  builtApp();
}
