"""A small table of facts: capitals, colours, animals. Held out are pairs of a fact and a way to ask for it."""

from split import held_out

from .words import ANIMALS, CAPITALS, COLOURS, invented

THE = {"Netherlands", "Philippines", "United Kingdom", "United States"}
CAPITAL = ["What is the capital of {c}?", "what is the capital of {c}", "Name the capital of {c}.", "Which city is the capital of {c}?", "Capital of {c}?",
           "Tell me the capital of {c}.", "What's the capital of {c}?", "What is the capital city of {c}?", "Do you know the capital of {c}?",
           "{c}: capital?", "Which is the capital of {c}?", "capital of {c}", "What is {c}'s capital?"]
COUNTRY = ["Which country has the capital {c}?", "{c} is the capital of which country?", "Of which country is {c} the capital?",
           "What country is {c} the capital of?", "{c} is the capital of what?"]
COLOUR = ["What colour is {t}?", "What color is {t}?", "Which colour is {t}?", "what colour is {t}", "Tell me the colour of {t}.", "What is the colour of {t}?",
          "What's the color of {t}?", "The colour of {t}?", "Do you know the colour of {t}?", "what color is {t}"]
SOUND = ["What does {a} say?", "What sound does {a} make?", "Which sound does {a} make?", "what sound does {a} make", "What noise does {a} make?",
         "Tell me the sound of {a}.", "How does {a} sound?"]
LEGS = ["How many legs does {a} have?", "how many legs does {a} have", "How many legs has {a}?", "Tell me how many legs {a} has.", "The number of legs of {a}?",
        "Do you know how many legs {a} has?"]
YOUNG = ["What is a young {n} called?", "What do you call a young {n}?", "What is a baby {n} called?", "What do you call a baby {n}?", "The name of a young {n}?",
         "what is a baby {n} called", "How is a young {n} called?"]


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def capitals(rng):
    country = rng.choice(list(CAPITALS))
    city, spoken = CAPITALS[country], ("the " if country in THE else "") + country
    if rng.random() < 0.8:
        return country, CAPITAL, {"c": spoken}, f"The capital of {spoken} is {city}.", city
    return city, COUNTRY, {"c": city}, f"{city} is the capital of {spoken}.", country


def colours(rng):
    thing = rng.choice(list(COLOURS))
    return thing, COLOUR, {"t": thing}, f"{thing[0].upper()}{thing[1:]} is {COLOURS[thing]}.", COLOURS[thing]


def animals(rng):
    noun = rng.choice(list(ANIMALS))
    sound, legs, young = ANIMALS[noun]
    kind, one = rng.randrange(3), article(noun)
    start = one[0].upper() + one[1:]
    if kind == 0:
        return noun, SOUND, {"a": one}, f"{start} says {sound}.", sound
    if kind == 1:
        return noun, LEGS, {"a": one}, f"{start} has {legs if legs else 'no'} legs.", str(legs) if legs else "no legs"
    return noun, YOUNG, {"n": noun}, f"A young {noun} is called {article(young)}.", young


def case(rng, held):
    while True:
        table = rng.choice([capitals, capitals, colours, animals])
        fact, forms, slots, answer, value = table(rng)
        form = rng.choice(forms)
        if held_out("facts", fact, form) == held:
            return {"skill": "facts", "user": form.format(**slots), "answer": answer, "thought": "A question about a fact I know.",
                    "check": {"kind": "contains", "value": [value]}}


def unknown(rng, held):
    """A country that does not exist."""
    while True:
        country, form = invented(rng).capitalize(), rng.choice(CAPITAL)
        if held_out("unknown", country) == held:
            return {"skill": "honesty", "user": form.format(c=country), "answer": f"I do not know a country called {country}.",
                    "thought": "I do not know this country.", "check": {"kind": "contains", "value": ["do not know"]}}
