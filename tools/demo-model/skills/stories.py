"""Three-sentence stories from two words: somebody and something."""

from split import held_out

SOMEBODY = """fox;cat;dog;bear;wolf;mouse;owl;king;queen;girl;boy;wizard;robot;farmer;sailor;baker;dragon;rabbit;knight;pirate;gardener;teacher;painter;giant;
fisherman;frog;hedgehog;lion;witch;horse;doctor;pilot;cook;penguin;turtle;squirrel;monkey;elephant;miller;shepherd""".replace("\n", "").split(";")
KINDS = {
    "light": "lantern;candle;lamp;torch;star;fire;match;mirror",
    "vessel": "boat;ship;bicycle;train;balloon;wagon;car;raft;sledge;kite",
    "food": "cake;apple;bread;pie;soup;cheese;cookie;pear;honey;sandwich",
    "treasure": "coin;ring;crown;pearl;jewel;map;key;chest;necklace;stone",
    "music": "drum;flute;violin;guitar;bell;trumpet;song;piano;whistle;harp",
    "wear": "hat;coat;scarf;boot;shirt;glove;sock;cloak;belt;dress",
    "grow": "tree;flower;rose;seed;pumpkin;carrot;garden;bush;sunflower;bean",
    "tool": "hammer;spoon;rope;ladder;needle;broom;bucket;pen;book;umbrella",
}
SOMETHING = {word: kind for kind, words in KINDS.items() for word in words.split(";")}
PLOTS = {
    "light": "One dark night {A} was lost in the forest. Then {S} saw {b} shining behind the trees. It showed the way, and soon {S} was safe at home.",
    "vessel": "Once {A} built {b} in the yard. The next morning {S} set off to see the wide world. In the evening {S} came home, tired and happy.",
    "food": "Once {A} was very hungry. At last {S} found {b} on a table and shared it with a friend. They ate together and laughed until the sun went down.",
    "treasure": "Long ago {A} found {b} under an old tree. Many people wanted to buy the {B}, but {S} kept it safe. One day it brought good luck to the whole village.",
    "music": "Every evening {A} listened to {b} from far away. One day {S} tried it too, and everybody began to dance. Since then there is music in the village every night.",
    "wear": "One winter {A} was cold and sad. A kind friend came and brought {b} as a gift. Now {S} is warm and smiles at the snow.",
    "grow": "In spring {A} looked after {b} with great care. Every day {S} brought fresh water and waited. In summer the {B} was the most beautiful in the land.",
    "tool": "One day {A} needed {b} to help a neighbour. {S2} looked everywhere and found it in the old barn. Together they finished the work before the rain came.",
}
FORMS = ["Tell me a story about {a} and {b}.", "Tell a story about {a} and {b}.", "Write a short story about {a} and {b}.", "A story with {a} and {b}, please.",
         "Tell me a short story with {a} and {b}.", "Write a story with the words {A} and {B}.", "Story: {A}, {B}", "Make up a story about {a} and {b}.",
         "tell me a story about {a} and {b}", "Can you tell me a story about {a} and {b}?", "Please tell a story about {A} and {B}.",
         "Tell me a story with the words {A} and {B}.", "Write a story about {a} and {b}."]


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def case(rng, held):
    while True:
        somebody, something = rng.choice(SOMEBODY), rng.choice(list(SOMETHING))
        if held_out("story", somebody, something) == held:
            break
    one, thing = article(somebody), article(something)
    answer = PLOTS[SOMETHING[something]].format(A=one, S=f"the {somebody}", S2=f"The {somebody}", b=thing, B=something)
    slots = {"a": one, "b": thing, "A": somebody, "B": something}
    if rng.random() < 0.25:
        slots = {"a": thing, "b": one, "A": something, "B": somebody}
    return {"skill": "story", "user": rng.choice(FORMS).format(**slots), "answer": answer, "thought": f"A story with {one} and {thing}.",
            "check": {"kind": "story", "value": [somebody, something]}}
