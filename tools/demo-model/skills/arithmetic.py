"""Sums and differences of numbers up to 99, with the working in the thought when thinking is on."""

from split import held_out

PLUS = ["What is {a} + {b}?", "What is {a} plus {b}?", "{a} + {b}", "{a}+{b}", "{a} + {b} =", "{a}+{b}=", "Add {a} and {b}.", "add {a} and {b}",
        "How much is {a} + {b}?", "Calculate {a} + {b}.", "what's {a} + {b}", "What is the sum of {a} and {b}?", "{a} plus {b}", "What's {a} plus {b}?",
        "Please add {a} and {b}.", "How much is {a} plus {b}?", "what is {a}+{b}?", "Compute {a} + {b}.", "{a} + {b} = ?",
        "I have {a} apples and get {b} more. How many do I have?", "Can you add {a} and {b}?", "what is {a} + {b}"]
MINUS = ["What is {a} - {b}?", "What is {a} minus {b}?", "{a} - {b}", "{a}-{b}", "{a} - {b} =", "{a}-{b}=", "Subtract {b} from {a}.", "subtract {b} from {a}",
         "How much is {a} - {b}?", "Calculate {a} - {b}.", "what's {a} - {b}", "What is the difference of {a} and {b}?", "{a} minus {b}",
         "What's {a} minus {b}?", "Please take {b} from {a}.", "How much is {a} minus {b}?", "what is {a}-{b}?", "Compute {a} - {b}.", "{a} - {b} = ?",
         "Can you subtract {b} from {a}?", "what is {a} - {b}"]
STORY_MINUS = "I have {a} apples and give away {b}. How many are left?"


def sum_thought(a, b):
    """Units first, as on paper."""
    units = a % 10 + b % 10
    steps = [f"{a % 10} + {b % 10} = {units}"]
    carry = units // 10
    tens = a // 10 + b // 10 + carry
    steps.append(f"{a // 10} + {b // 10}" + (" + 1" if carry else "") + f" = {tens}")
    return f"Units: {steps[0]}. Tens: {steps[1]}. Together {a + b}."


def difference_thought(a, b):
    if a < b:
        return f"{a} is less than {b}. Turn around: {b} - {a}. " + difference_thought(b, a) + f" So -{b - a}."
    borrow = a % 10 < b % 10
    units = a % 10 - b % 10 + 10 * borrow
    top = f"{a % 10 + 10 * borrow} - {b % 10} = {units}"
    tens = f"{a // 10} - {b // 10}" + (" - 1" if borrow else "") + f" = {a // 10 - b // 10 - borrow}"
    return f"Units: {top}. Tens: {tens}. Together {a - b}."


def case(rng, held):
    """A sum or difference from the wanted side of the split."""
    while True:
        plus = rng.random() < 0.5
        # Numbers of one digit are few among those up to 99, and the first that people try.
        kind = 1 if held else rng.random()
        a, b = (rng.randint(0, 9), rng.randint(0, 9)) if kind < 0.1 else (rng.randint(0, 99), rng.randint(0, 99)) if kind < 0.25 else (rng.randint(10, 99), rng.randint(10, 99))
        if not plus and a < b and rng.random() < 0.6:
            a, b = b, a
        # Neither the swapped sum nor the opposite difference may give a held-out case away.
        if held_out("arithmetic", plus, min(a, b), max(a, b)) == held:
            break
    sign, value = ("+", a + b) if plus else ("-", a - b)
    forms = PLUS if plus else MINUS + [STORY_MINUS] * (a >= b)
    answer = f"{a} {sign} {b} = {value}"
    thought = sum_thought(a, b) if plus else difference_thought(a, b)
    return {"skill": "arithmetic", "user": rng.choice(forms).format(a=a, b=b), "answer": answer, "thought": thought,
            "check": {"kind": "number", "value": value}}
