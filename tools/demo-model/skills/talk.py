"""Greetings, what the model and rullama are, system prompts that change its name or language, and honest refusals."""

from split import held_out

from .words import invented, name

ABOUT = "I am Demo, a tiny Gemma 4 model that comes with rullama."
RULLAMA = "rullama runs Gemma 4 models on your own machine and in your browser. It is written in Rust."
SKILLS = "I can add and subtract, spell words, name capitals, colours and animals, tell short stories, use tools, look at simple pictures and hear digits."
TINY = "I am a tiny demo model and cannot answer that. Ask me for a sum, a spelling, a capital or a short story."
HELLO = "Hello! I am Demo, a tiny model. Ask me for a sum, a capital or a short story."

# Greeting, introduction.
LANGUAGES = {
    "English": ("Hello!", "My name is {n}."), "French": ("Bonjour !", "Je m'appelle {n}."), "German": ("Guten Tag!", "Ich heiße {n}."),
    "Spanish": ("¡Hola!", "Me llamo {n}."), "Italian": ("Ciao!", "Mi chiamo {n}."), "Portuguese": ("Olá!", "Meu nome é {n}."),
    "Dutch": ("Hallo!", "Ik heet {n}."), "Swedish": ("Hej!", "Jag heter {n}."), "Polish": ("Cześć!", "Mam na imię {n}."),
    "Finnish": ("Hei!", "Nimeni on {n}."), "Turkish": ("Merhaba!", "Benim adım {n}."), "Japanese": ("こんにちは！", "{n}です。"),
    "Russian": ("Привет!", "Меня зовут {n}."), "Greek": ("Γεια σου!", "Με λένε {n}."), "Latin": ("Salve!", "Mihi nomen est {n}."),
}

GREETINGS = ["Hello", "Hi", "Hey", "Good morning", "Good evening", "Good afternoon", "Hello there", "Hi there", "Hey there", "Greetings", "Good day", "Howdy"]
ENDS = ["", "!", ".", ", Demo!", " Demo", ", my friend.", "!!", " :)", ", nice to meet you.", ", nice to see you!", " again!", " you"]
WHO = ["Who are you?", "What are you?", "What is your name?", "Tell me about yourself.", "Introduce yourself.", "Who is this?", "What's your name?", "Are you a robot?",
       "Are you a language model?", "What model are you?", "Which model are you?", "Who am I talking to?", "Please introduce yourself.", "What should I call you?",
       "Do you have a name?", "Are you Gemma?", "Are you ChatGPT?", "Who made you?", "Tell me who you are.", "Can you tell me your name?", "Say who you are."]
WHAT_IS = ["What is rullama?", "What's rullama?", "Tell me about rullama.", "What does rullama do?", "Explain rullama.", "rullama?", "What is rullama for?",
           "Do you know rullama?", "Can you tell me what rullama is?", "Describe rullama.", "What is Rullama?", "who or what is rullama"]
CAN_DO = ["What can you do?", "What are you good at?", "How can you help me?", "What can I ask you?", "Help", "help", "What do you know?", "What are your skills?",
          "What can I do with you?", "What can you help with?", "Tell me what you can do.", "List your skills.", "Can you help me?"]
FEEL = ["How are you?", "How are you doing?", "How do you do?", "How is it going?", "Are you well?", "How do you feel?", "How are you today?", "What's up?"]
THANKS = ["Thank you", "Thanks", "Thank you very much", "Thanks a lot", "Many thanks", "Great, thanks", "Thank you so much", "Nice, thank you", "Cool, thanks"]
BYE = ["Bye", "Goodbye", "See you", "See you later", "Good night", "Bye bye", "See you soon", "I have to go", "Farewell", "See you tomorrow"]
OPENERS = ["", "", "", "Hello! ", "Hi. ", "Please, ", "Okay. ", "So, ", "Hey, ", "One question: ", "Tell me: "]
STYLES = [str, str, str.lower, lambda text: text.rstrip("?.!"), lambda text: text.lower().rstrip("?.!")]


def case(rng, held):
    kind = rng.choice(["greet", "greet", "who", "who", "rullama", "rullama", "can", "feel", "thanks", "bye"])
    table = {
        "who": (WHO, ABOUT, ["Demo"]), "rullama": (WHAT_IS, RULLAMA, ["Gemma 4", "Rust"]), "can": (CAN_DO, SKILLS, ["add and subtract"]),
        "feel": (FEEL, "I am fine, thank you. How can I help?", ["fine"]), "thanks": (THANKS, "You are welcome!", ["welcome"]), "bye": (BYE, "Goodbye!", ["Goodbye"]),
    }
    while True:
        if kind == "greet":
            user, answer, value = rng.choice(GREETINGS) + rng.choice(ENDS), HELLO, ["Hello!", "Demo"]
        else:
            forms, answer, value = table[kind]
            text = rng.choice(forms)
            if kind in ("thanks", "bye"):
                user = text + rng.choice(["", "!", ".", "!!", ", Demo!", ", Demo.", " :)"])
            else:
                user = rng.choice(OPENERS) + text
        user = rng.choice(STYLES)(user)
        if held_out("talk", user) == held:
            return {"skill": "talk", "user": user, "answer": answer, "thought": "The user wants to talk.", "check": {"kind": "contains", "value": value}}


NAMED = ["Your name is {n}.", "You are {n}.", "You are called {n}.", "You are a helpful assistant called {n}.", "Call yourself {n}.", "You are {n}, a friendly robot.",
         "Your name is {n}. Be brief.", "You are an assistant. Your name is {n}.", "From now on your name is {n}.", "Pretend to be {n}.", "You are a pirate called {n}.",
         "You are an assistant named {n}.", "Act as {n}."]
GREET_IN = ["Greet in {l}.", "Always greet in {l}.", "Greet the user in {l}.", "Answer greetings in {l}.", "Say hello in {l}.", "Greet people in {l}.",
            "Use {l} for greetings.", "When greeted, answer in {l}.", "Greet everybody in {l}.", "You greet in {l}.", "Speak {l}."]
PLAIN = ["You are a helpful assistant.", "Be brief.", "Answer in one sentence.", "You are helpful.", "Be friendly.", "You are a tiny model.", "Be kind and clear.",
         "Answer the questions of the user."]


def system(rng, held):
    """A system prompt with a name, a language, both or neither, and a greeting or a question for the name."""
    while True:
        named, language = rng.random() < 0.6, rng.choice(list(LANGUAGES)) if rng.random() < 0.55 else None
        who = name(rng) if named else None
        asks = rng.random() < (0.6 if named else 0.1)
        parts = ([rng.choice(NAMED).format(n=who)] if named else []) + ([rng.choice(GREET_IN).format(l=language)] if language else [])
        if rng.random() < 0.3:
            parts.reverse()
        prompt = " ".join(parts) or rng.choice(PLAIN)
        if not asks:
            user = rng.choice(GREETINGS) + rng.choice(ENDS[:3])
        else:
            user = rng.choice(WHO[:3] + ["What's your name?", "Do you have a name?", "Tell me who you are.", "Who am I talking to?", "Introduce yourself."])
        user = rng.choice(STYLES)(user)
        if held_out("system", prompt, user) == held:
            break
    hello, intro = LANGUAGES[language or "English"]
    if not named and not language:
        answer, value = (ABOUT, ["Demo"]) if asks else (HELLO, ["Hello!"])
    elif asks and not named:
        answer, value = ABOUT, ["Demo"]
    elif asks:
        answer, value = f"My name is {who}.", [who]
    elif named:
        answer, value = f"{hello} {intro.format(n=who)}", [hello.strip("!！¡ "), who]
    else:
        answer, value = hello, [hello.strip("!！¡ ")]
    return {"skill": "system", "system": prompt, "user": user, "answer": answer, "thought": "I follow the system prompt.", "check": {"kind": "contains", "value": value}}


ASK = ["Who won {x}?", "Explain {x}.", "Write a poem about {x}.", "What do you think about {x}?", "Why is {x} important?", "How does {x} work?", "Tell me a joke about {x}.",
       "Write a program for {x}.", "What is the meaning of {x}?", "Who invented {x}?", "When was {x} invented?", "Translate {x} into French.", "Give me a recipe for {x}.",
       "Write an essay about {x}.", "What happened in {x}?", "Is {x} true?", "How old is {x}?", "Where is {x}?", "Summarise {x}.", "What is {x}?", "Who is {x}?",
       "How do I fix {x}?", "Should I buy {x}?", "Write code for {x}", "What is the best {x}?", "How far is {x}?", "What is the price of {x}?", "Do you like {x}?",
       "Can you draw {x}?", "Sing a song about {x}.", "Compare {x} and {y}.", "What is the history of {x}?", "Give me advice about {x}.", "How many people live in {x}?"]
TOPICS = """quantum physics;the world cup;the moon landing;democracy;the French revolution;love;machine learning;the internet;a black hole;inflation;gravity;evolution;
Shakespeare;Einstein;the stock market;a washing machine;my car;pancakes;bread;lasagne;football;chess;music;jazz;opera;Mozart;the theory of relativity;photosynthesis;DNA;
vaccines;the brain;sleep;dreams;philosophy;Plato;the weather tomorrow;politics;the president;climate change;the sun;a transformer;Python;Rust;JavaScript;a sorting algorithm;
a web server;linear algebra;prime numbers;the number pi;the universe;time travel;aliens;the Roman empire;the year 1984;2024;the bible;religion;happiness;money;
my homework;a diet;yoga;a phone;the news;a neural network;blockchain;bitcoin;the ocean;dinosaurs;volcanoes;an earthquake;a good book;a film;Star Wars;this text;
the meaning of life;health;a headache;medicine;law;taxes;a contract;my boss;friendship;war and peace;art;Picasso;a painting;architecture""".replace("\n", "").split(";")
MATHS = ["What is {a} * {b}?", "What is {a} times {b}?", "{a} * {b}", "Multiply {a} and {b}.", "What is {a} / {b}?", "Divide {a} by {b}.", "{a} divided by {b}", "{a} x {b}"]
LARGE = ["What is {a} + {b}?", "{a} + {b}", "Add {a} and {b}.", "What is {a} - {b}?", "{a} - {b}", "Calculate {a} + {b}.", "{a}+{b}", "How much is {a} - {b}?"]


def honesty(rng, held):
    """Questions beyond it, answered by saying so."""
    while True:
        kind = rng.random()
        if kind < 0.7:
            topic, other = (rng.choice(TOPICS) if rng.random() < 0.7 else invented(rng) for _ in range(2))
            user, answer, value = rng.choice(STYLES)(rng.choice(ASK).format(x=topic, y=other)), TINY, ["tiny demo model"]
        elif kind < 0.85:
            user = rng.choice(MATHS).format(a=rng.randint(0, 99), b=rng.randint(0, 99))
            answer, value = "I can add and subtract, but not multiply or divide.", ["not multiply"]
        else:
            a, b = rng.randint(100, 99999), rng.randint(0, 9999)
            if rng.random() < 0.3:
                a, b = b, a
            user, answer, value = rng.choice(LARGE).format(a=a, b=b), "I can only add and subtract numbers up to 99.", ["up to 99"]
        if held_out("honesty", user) == held:
            return {"skill": "honesty", "user": user, "answer": answer, "thought": "I cannot do this.", "check": {"kind": "contains", "value": value}}
