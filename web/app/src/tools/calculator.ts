// Arithmetic for models, which are bad at it: a parser of expressions, so that nothing a model writes is run as a program.

/** What is wrong with an expression. Models read it, so it is English. */
export class CalculatorError extends Error {
  override name = "CalculatorError";
}

const MOST_LENGTH = 2000;
const MOST_DEPTH = 100;
const MOST_FACTORIAL = 170;

const CONSTANTS: Record<string, number> = { pi: Math.PI, e: Math.E, tau: 2 * Math.PI };

const FUNCTIONS: Record<string, (...values: number[]) => number> = {
  abs: Math.abs,
  sqrt: Math.sqrt,
  cbrt: Math.cbrt,
  exp: Math.exp,
  ln: Math.log,
  log: (x, base) => (base === undefined ? Math.log10(x) : Math.log(x) / Math.log(base)),
  log2: Math.log2,
  log10: Math.log10,
  sin: Math.sin,
  cos: Math.cos,
  tan: Math.tan,
  asin: Math.asin,
  acos: Math.acos,
  atan: Math.atan,
  atan2: Math.atan2,
  sinh: Math.sinh,
  cosh: Math.cosh,
  tanh: Math.tanh,
  floor: Math.floor,
  ceil: Math.ceil,
  round: (x, digits = 0) => Number(`${Math.round(Number(`${x}e${digits}`))}e${-digits}`),
  trunc: Math.trunc,
  sign: Math.sign,
  min: Math.min,
  max: Math.max,
  hypot: Math.hypot,
  pow: Math.pow,
  mod: (a, b) => a - b * Math.floor(a / b),
  factorial,
};

function factorial(n: number): number {
  if (!Number.isInteger(n) || n < 0 || n > MOST_FACTORIAL) {
    throw new CalculatorError(`factorials are of whole numbers from 0 to ${MOST_FACTORIAL}`);
  }
  let result = 1;
  for (let factor = 2; factor <= n; factor++) result *= factor;
  return result;
}

/** The value of an expression, such as `2 * (3 + 4)^2 / sqrt(2)`. */
export function calculate(expression: string): number {
  if (expression.length > MOST_LENGTH) throw new CalculatorError("the expression is too long");
  const parser = new Parser(tokens(expression));
  const value = parser.sum(0);
  parser.end();
  if (Number.isNaN(value)) throw new CalculatorError("the result is not a number");
  if (!Number.isFinite(value)) throw new CalculatorError("the result is infinite: a division by zero, or too large");
  return value;
}

/** A value as people write it: without what doubles get wrong in the last places. */
export function shown(value: number): string {
  return Number.isSafeInteger(value) ? String(value) : String(Number(value.toPrecision(15)));
}

function tokens(text: string): string[] {
  const found: string[] = [];
  const pattern =
    /\s*(?:(\d+(?:_\d{3})*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)|([a-zA-Z]\w*)|(\*\*|[-+*/%^!(),×÷−·π]))/uy;
  const clean = text.trimEnd();
  while (pattern.lastIndex < clean.length) {
    const at = pattern.lastIndex;
    const match = pattern.exec(clean);
    if (!match)
      throw new CalculatorError(`unexpected ${JSON.stringify(clean.slice(at).trim()[0] ?? "")} in the expression`);
    found.push(match[1]?.replaceAll("_", "") ?? match[2] ?? SAME[match[3] ?? ""] ?? match[3] ?? "");
  }
  return found;
}

/** Signs that mean the same. */
const SAME: Record<string, string> = { "**": "^", "×": "*", "·": "*", "÷": "/", "−": "-", π: "pi" };

class Parser {
  private at = 0;

  constructor(private readonly list: readonly string[]) {}

  private take(...wanted: string[]): string | undefined {
    const token = this.list[this.at];
    if (token === undefined || !wanted.includes(token)) return undefined;
    this.at++;
    return token;
  }

  end(): void {
    const token = this.list[this.at];
    if (token !== undefined) throw new CalculatorError(`unexpected ${JSON.stringify(token)} in the expression`);
  }

  sum(depth: number): number {
    if (depth > MOST_DEPTH) throw new CalculatorError("the expression is nested too deeply");
    let value = this.product(depth);
    for (let sign = this.take("+", "-"); sign; sign = this.take("+", "-")) {
      const next = this.product(depth);
      value = sign === "+" ? value + next : value - next;
    }
    return value;
  }

  private product(depth: number): number {
    let value = this.signed(depth);
    for (let sign = this.take("*", "/", "%"); sign; sign = this.take("*", "/", "%")) {
      const next = this.signed(depth);
      value = sign === "*" ? value * next : sign === "/" ? value / next : value % next;
    }
    return value;
  }

  private signed(depth: number): number {
    if (depth > MOST_DEPTH) throw new CalculatorError("the expression is nested too deeply");
    const sign = this.take("+", "-");
    if (sign) return sign === "-" ? -this.signed(depth + 1) : this.signed(depth + 1);
    return this.power(depth);
  }

  /** Powers come from the right, and before a sign on their left. */
  private power(depth: number): number {
    let base = this.primary(depth);
    while (this.take("!")) base = factorial(base);
    return this.take("^") ? base ** this.signed(depth + 1) : base;
  }

  private primary(depth: number): number {
    const token = this.list[this.at];
    if (token === undefined) throw new CalculatorError("the expression ends too early");
    this.at++;
    if (/^[\d.]/u.test(token)) return Number(token);
    if (token === "(") return this.closed(this.sum(depth + 1));
    const name = token.toLowerCase();
    const constant = Object.hasOwn(CONSTANTS, name) ? CONSTANTS[name] : undefined;
    if (constant !== undefined) return constant;
    const known = Object.hasOwn(FUNCTIONS, name) ? FUNCTIONS[name] : undefined;
    if (!known) {
      const isName = /^[a-z]/u.test(name);
      throw new CalculatorError(
        isName ? `there is no function or constant ${token}` : `unexpected ${JSON.stringify(token)}`,
      );
    }
    if (!this.take("(")) throw new CalculatorError(`${token} needs its argument in parentheses`);
    const values = [this.sum(depth + 1)];
    while (this.take(",")) values.push(this.sum(depth + 1));
    return this.closed(known(...values));
  }

  private closed(value: number): number {
    if (!this.take(")")) throw new CalculatorError("a closing parenthesis is missing");
    return value;
  }
}
