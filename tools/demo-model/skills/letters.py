"""Spelling, reversing and counting the letters of short words."""

from split import held_out

from .words import WORDS, invented

SPELL = ["Spell {w}.", "Spell the word {w}.", "How do you spell {w}?", "spell {w}", 'Spell "{w}".', "Please spell {w}.", "Can you spell {w}?",
         'Spell the word "{w}".', "Spell {w} letter by letter."]
REVERSE = ["Reverse {w}.", "Reverse the word {w}.", "Spell {w} backwards.", "reverse {w}", 'Reverse "{w}".', "What is {w} backwards?",
           "Write {w} backwards.", 'Spell "{w}" backwards.', "Please reverse the word {w}.", "Turn {w} around."]
LENGTH = ["How many letters are in {w}?", "How many letters does {w} have?", "Count the letters in {w}.", 'How many letters are in "{w}"?',
          "count the letters of {w}", "How long is the word {w}?", "How many letters are in the word {w}?"]
OCCURS = ["How many times does {c} occur in {w}?", "How many {c} are in {w}?", "Count the letter {c} in {w}.", "How many {c}'s are in {w}?",
          'How often is "{c}" in "{w}"?', "How many times is the letter {c} in {w}?", 'How many "{c}" are in the word {w}?']
FIRST = ["What is the first letter of {w}?", "Which letter does {w} begin with?", "First letter of {w}?", "{w} starts with which letter?"]
LAST = ["What is the last letter of {w}?", "Which letter does {w} end with?", "Last letter of {w}?", "{w} ends with which letter?"]
TASKS = ["spell"] * 4 + ["reverse"] * 4 + ["length"] * 3 + ["occurs"] * 3 + ["first", "last"]


def case(rng, held):
    """Invented words are held out from all tasks; real ones, often a single token, from one task at a time."""
    while True:
        task = rng.choice(TASKS)
        if rng.random() < 0.45:
            word = rng.choice(WORDS)
            apart = held_out("letters", task, word)
        else:
            word = invented(rng)
            apart = held_out("letters", word)
        if apart == held and not (held and len(word) > 8):
            break
    letters = "-".join(word)
    if task == "spell":
        form, answer, check = SPELL, letters, {"kind": "letters", "value": word}
    elif task == "reverse":
        form, answer, check = REVERSE, "-".join(reversed(word)), {"kind": "letters", "value": word[::-1]}
    elif task == "length":
        form, answer = LENGTH, f"{letters} has {len(word)} letters."
        check = {"kind": "number", "value": len(word)}
    elif task == "occurs":
        letter = rng.choice(word) if rng.random() < 0.8 else rng.choice("abcdefghijklmnopqrstuvwxyz")
        count = word.count(letter)
        form = [f.replace("{c}", letter) for f in OCCURS]
        answer = f"{letters} has {count} {letter}."
        check = {"kind": "number", "value": count}
    else:
        form, letter = (FIRST, word[0]) if task == "first" else (LAST, word[-1])
        answer = f"The {task} letter of {word} is {letter}."
        check = {"kind": "contains", "value": [f"is {letter}"]}
    return {"skill": "letters", "user": rng.choice(form).format(w=word), "answer": answer,
            "thought": f"The word is {letters}.", "check": check}
