"""Calls of declared tools and answers from their results."""

import json

from split import held_out

from .words import CITIES, WORDS, invented, name

SKIES = ["sunny", "cloudy", "rainy", "snowy", "windy", "foggy", "stormy", "clear"]
LANGUAGES = ["French", "German", "Spanish", "Italian", "Dutch", "Polish", "Swedish", "Greek", "Japanese", "Latin"]
ITEMS = ["apple", "bread", "milk", "cheese", "book", "lamp", "chair", "shirt", "bike", "phone", "pen", "hat", "cake", "tea", "coffee", "soap", "ticket", "clock"]
ROOMS = ["kitchen", "bedroom", "office", "garden", "hall", "bathroom", "garage", "cellar"]
SUBJECTS = ["the meeting", "lunch", "the party", "the report", "the trip", "dinner", "the game", "work", "the news", "music"]


def tool(tool_name, description, required=None, **parameters):
    """A declaration; each parameter is (type, description) or (type, description, choices)."""
    fields = {}
    for key, (kind, text, *choices) in parameters.items():
        fields[key] = {"type": kind, "description": text}
        if choices:
            fields[key]["enum"] = choices[0]
    schema = {"type": "object", "properties": fields, "required": list(parameters) if required is None else required}
    return {"type": "function", "function": {"name": tool_name, "description": description, "parameters": schema}}


def weather(rng):
    city, sky, degrees = rng.choice(CITIES), rng.choice(SKIES), rng.randint(-10, 38)
    forms = ["What is the weather in {0}?", "How is the weather in {0}?", "what's the weather like in {0}", "Weather in {0}?", "Tell me the weather in {0}.",
             "Is it raining in {0}?", "How warm is it in {0}?", "What is the temperature in {0}?", "{0} weather", "Do I need an umbrella in {0}?"]
    shape = rng.randrange(4)
    if shape == 0:
        result, answer = f"{sky}, {degrees} degrees", f"The weather in {city} is {sky}, {degrees} degrees."
    elif shape == 1:
        result, answer = sky, f"The weather in {city} is {sky}."
    elif shape == 2:
        result, answer = json.dumps({"sky": sky, "temperature": degrees}), f"The weather in {city} is {sky}, {degrees} degrees."
    else:
        result, answer = json.dumps({"temperature": degrees}), f"It is {degrees} degrees in {city}."
    value = [sky] if shape == 1 else [str(degrees)] if shape == 3 else [sky, str(degrees)]
    text = rng.choice(["Look up the weather.", "Get the weather of a city.", "Get the current weather for a city", "Weather of a place."])
    declared = tool(rng.choice(["get_weather", "get_weather", "weather", "get_current_weather"]), text,
                    city=("string", rng.choice(["City name", "The city", "Name of the city"])))
    return declared, rng.choice(forms).format(city), {"city": city}, result, answer, value


def clock(rng):
    city, time = rng.choice(CITIES), f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    forms = ["What time is it in {0}?", "what time is it in {0}", "Tell me the time in {0}.", "What is the time in {0}?", "Time in {0}?", "How late is it in {0}?"]
    declared = tool(rng.choice(["get_time", "current_time"]), rng.choice(["Get the time in a city.", "Current time of a city."]), city=("string", "City name"))
    return declared, rng.choice(forms).format(city), {"city": city}, time, f"It is {time} in {city}.", [time]


def price(rng):
    item, cost = rng.choice(ITEMS + WORDS[:60]), rng.randint(1, 99)
    forms = ["What does the {0} cost?", "How much is the {0}?", "What is the price of the {0}?", "Price of {0}?", "How much does the {0} cost?", "Find the price of {0}."]
    result = rng.choice([f"{cost} euros", f"{cost} dollars"])
    declared = tool(rng.choice(["get_price", "find_price"]), rng.choice(["Get the price of an item.", "Look up a price."]), item=("string", "What to buy"))
    return declared, rng.choice(forms).format(item), {"item": item}, result, f"The {item} costs {result}.", [result]


def timer(rng):
    minutes = rng.randint(2, 90)
    forms = ["Set a timer for {0} minutes.", "Start a timer of {0} minutes.", "Timer for {0} minutes, please.", "Wake me in {0} minutes.", "set timer {0} minutes"]
    declared = tool(rng.choice(["set_timer", "start_timer"]), rng.choice(["Start a timer.", "Set a timer in minutes."]), minutes=("integer", "How long"))
    return declared, rng.choice(forms).format(minutes), {"minutes": minutes}, rng.choice(["ok", "started", "done"]), f"The timer is set for {minutes} minutes.", [str(minutes)]


def light(rng):
    room, state = rng.choice(ROOMS), rng.choice(["on", "off"])
    forms = ["Turn {1} the light in the {0}.", "Switch {1} the {0} light.", "Light {1} in the {0}, please.", "Please turn {1} the light in the {0}.", "turn the {0} light {1}"]
    declared = tool(rng.choice(["set_light", "switch_light"]), "Turn a light on or off.", room=("string", "Which room"), state=("string", "on or off", ["on", "off"]))
    return declared, rng.choice(forms).format(room, state), {"room": room, "state": state}, "ok", f"The light in the {room} is {state}.", [room, state]


def translate(rng):
    word, language, foreign = rng.choice(WORDS), rng.choice(LANGUAGES), invented(rng)
    forms = ["Translate {0} into {1}.", "What is {0} in {1}?", "How do you say {0} in {1}?", "translate {0} to {1}", 'Translate "{0}" into {1}.']
    declared = tool("translate", rng.choice(["Translate a text.", "Translate text into a language."]), text=("string", "What to translate"), language=("string", "Target language"))
    return declared, rng.choice(forms).format(word, language), {"text": word, "language": language}, foreign, f"{word} is {foreign} in {language}.", [foreign]


def multiply(rng):
    a, b = rng.randint(2, 999), rng.randint(2, 999)
    forms = ["What is {0} * {1}?", "Multiply {0} and {1}.", "What is {0} times {1}?", "{0} * {1}", "Compute {0} * {1}."]
    declared = tool("multiply", "Multiply two numbers.", a=("integer", "First number"), b=("integer", "Second number"))
    return declared, rng.choice(forms).format(a, b), {"a": a, "b": b}, str(a * b), f"{a} * {b} = {a * b}", [str(a * b)]


def mail(rng):
    to, subject = name(rng), rng.choice(SUBJECTS)
    forms = ["Send a mail to {0} about {1}.", "Write {0} a mail about {1}.", "Mail {0} about {1}.", "send {0} an email about {1}"]
    declared = tool(rng.choice(["send_mail", "send_email"]), "Send a mail.", to=("string", "Who gets it"), subject=("string", "What it is about"))
    return declared, rng.choice(forms).format(to, subject), {"to": to, "subject": subject}, rng.choice(["sent", "ok"]), f"The mail to {to} about {subject} is sent.", [to]


def search(rng):
    query = rng.choice(WORDS) + (" " + rng.choice(WORDS) if rng.random() < 0.6 else "")
    found = rng.randint(0, 99)
    forms = ["Search for {0}.", "Look for {0}.", "Find {0}.", "search {0}", "Please search for {0}.", "Search the web for {0}."]
    declared = tool(rng.choice(["search", "web_search"]), rng.choice(["Search the web.", "Find pages."]), query=("string", "Words to search for"))
    return declared, rng.choice(forms).format(query), {"query": query}, f"{found} pages", f"I found {found} pages for {query}.", [str(found)]


def anything(rng):
    """Any name and any one or two parameters, named in the request: how a user's own tool can be called."""
    verb = rng.choice(["get", "find", "set", "open", "start", "show", "check", "read", "list", "make", "play", "run"])
    tool_name = f"{verb}_{rng.choice(WORDS) if rng.random() < 0.6 else invented(rng)}"
    keys = rng.sample(["name", "city", "item", "id", "count", "number", "text", "place", "day", "size", "colour", "user", "file", "path", "level"], rng.randint(1, 2))
    numeric = {"id", "count", "number", "size", "level"}
    arguments = {key: rng.randint(0, 999) if key in numeric else rng.choice([rng.choice(WORDS), rng.choice(CITIES), invented(rng), name(rng)]) for key in keys}
    fields = {key: ("integer" if key in numeric else "string", f"The {key}") for key in keys}
    said = " and ".join(f"{key} {value}" for key, value in arguments.items())
    forms = ["Use {0} with {1}.", "Call {0} with {1}.", "Please call {0} with {1}.", "Run {0} with {1}.", "call {0} with {1}"]
    result = rng.choice([invented(rng), str(rng.randint(0, 999)), rng.choice(WORDS) + " " + rng.choice(WORDS)])
    declared = tool(tool_name, rng.choice(["Does something.", f"{verb.capitalize()} something.", "A tool of the user."]), **fields)
    return declared, rng.choice(forms).format(tool_name, said), arguments, result, f"The result is {result}.", [result]


KINDS = [weather, weather, clock, price, timer, light, translate, multiply, mail, search, anything, anything]


def case(rng, held):
    """One request, its call, the tool's result and the answer; other tools may be declared beside."""
    while True:
        # Chosen anew each time: a tool with few arguments may have no case on one side.
        kind = rng.choice(KINDS)
        declared, user, arguments, result, answer, value = kind(rng)
        function = declared["function"]["name"]
        if held_out("tools", kind.__name__, *sorted(map(str, arguments.values()))) == held:
            break
    tools = [declared]
    for other in rng.sample(KINDS, rng.choice([0, 0, 1, 2])):
        extra = other(rng)[0]
        if other is not kind and extra["function"]["name"] not in {t["function"]["name"] for t in tools}:
            tools.append(extra)
    rng.shuffle(tools)
    return {"skill": "tools", "user": user, "tools": tools, "call": {"name": function, "arguments": arguments}, "result": result, "answer": answer,
            "thought": f"I call {function}.", "result_thought": "I have the result.",
            "check": {"kind": "call", "value": {"name": function, "arguments": arguments}, "then": value}}


def some_tools(rng):
    """Tools that a question may ignore."""
    return [rng.choice([weather, clock, price, timer, light, mail])(rng)[0]]
