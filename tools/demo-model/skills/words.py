"""Words that the generators draw from, and invented ones."""

CAPITALS = dict(item.split(":") for item in """Argentina:Buenos Aires;Australia:Canberra;Austria:Vienna;Belgium:Brussels;
Bolivia:Sucre;Brazil:Brasilia;Bulgaria:Sofia;Canada:Ottawa;Chile:Santiago;China:Beijing;Colombia:Bogota;Croatia:Zagreb;Cuba:Havana;
Cyprus:Nicosia;Denmark:Copenhagen;Ecuador:Quito;Egypt:Cairo;Estonia:Tallinn;Ethiopia:Addis Ababa;Finland:Helsinki;
France:Paris;Germany:Berlin;Ghana:Accra;Greece:Athens;Hungary:Budapest;Iceland:Reykjavik;India:New Delhi;Indonesia:Jakarta;
Iran:Tehran;Iraq:Baghdad;Ireland:Dublin;Israel:Jerusalem;Italy:Rome;Jamaica:Kingston;Japan:Tokyo;Jordan:Amman;Kenya:Nairobi;
Latvia:Riga;Lebanon:Beirut;Lithuania:Vilnius;Luxembourg:Luxembourg;Madagascar:Antananarivo;Malaysia:Kuala Lumpur;Malta:Valletta;
Mexico:Mexico City;Mongolia:Ulaanbaatar;Morocco:Rabat;Nepal:Kathmandu;Netherlands:Amsterdam;New Zealand:Wellington;
Nigeria:Abuja;Norway:Oslo;Pakistan:Islamabad;Panama:Panama City;Peru:Lima;Philippines:Manila;Poland:Warsaw;Portugal:Lisbon;
Romania:Bucharest;Russia:Moscow;Senegal:Dakar;Serbia:Belgrade;Singapore:Singapore;Slovakia:Bratislava;Slovenia:Ljubljana;
South Korea:Seoul;Spain:Madrid;Sweden:Stockholm;Switzerland:Bern;Thailand:Bangkok;Tunisia:Tunis;Turkey:Ankara;Ukraine:Kyiv;
United Kingdom:London;United States:Washington;Uruguay:Montevideo;Venezuela:Caracas;Vietnam:Hanoi""".replace("\n", "").split(";"))

COLOURS = dict(item.split(":") for item in """a banana:yellow;grass:green;the sky:blue;snow:white;coal:black;blood:red;
a carrot:orange;a lemon:yellow;a tomato:red;milk:white;the sun:yellow;a frog:green;an elephant:grey;chocolate:brown;the sea:blue;
a strawberry:red;a cucumber:green;an orange:orange;a pumpkin:orange;a flamingo:pink;a polar bear:white;a raven:black;a cherry:red;
an aubergine:purple;a violet:purple;a sunflower:yellow;spinach:green;a fire engine:red;a pig:pink;a mouse:grey;rust:brown;salt:white;
soil:brown;an emerald:green;a ruby:red;a sapphire:blue;gold:yellow;silver:grey;a swan:white;honey:yellow""".replace("\n", "").split(";"))

# Sound, legs, young.
ANIMALS = {name: (sound, int(legs), young) for name, sound, legs, young in (item.split(":") for item in """dog:woof:4:puppy;
cat:meow:4:kitten;cow:moo:4:calf;sheep:baa:4:lamb;horse:neigh:4:foal;pig:oink:4:piglet;duck:quack:2:duckling;hen:cluck:2:chick;
goat:bleat:4:kid;lion:roar:4:cub;wolf:howl:4:pup;frog:croak:4:tadpole;owl:hoot:2:owlet;donkey:hee-haw:4:foal;goose:honk:2:gosling;
bear:growl:4:cub;mouse:squeak:4:pup;snake:hiss:0:snakelet;bee:buzz:6:larva;tiger:roar:4:cub;elephant:trumpet:4:calf;crow:caw:2:chick;
turkey:gobble:2:poult;pigeon:coo:2:squab;seal:bark:0:pup;deer:bellow:4:fawn;fox:yelp:4:kit;cricket:chirp:6:nymph;swan:hiss:2:cygnet;
rooster:crow:2:chick""".replace("\n", "").split(";"))}

NAMES = """Ada Alan Alma Amir Anna Anton Arlo Aya Bea Ben Bella Bruno Carl Cleo Dora Dan Elif Ella Emil Emma Enzo Eva Felix Finn Flora Fred
Gina Greta Gus Hana Hugo Ida Igor Ines Iris Ivan Jack Jade Jan Joan Jonas Judy Kai Kira Lara Lars Leo Lena Liam Lily Lisa Lola Luca
Lucy Luis Luna Maja Mara Marco Maria Mark Max Maya Mia Mila Milo Mira Nadia Nico Nina Noah Nora Olga Oscar Otto Pablo Paul Petra Pia
Quinn Rita Robin Rosa Rudi Ruth Sam Sara Sofia Sven Tara Theo Tom Tina Uma Vera Viktor Wanda Will Yara Yuki Zoe Zora Rex Pixel Robo
Spark Bolt Chip Nova Echo Atlas Comet Pebble Biscuit Rusty Sunny Willow""".split()

CITIES = sorted({city for city in CAPITALS.values()} | set("""Barcelona Boston Bristol Chicago Cologne Dallas Denver Florence Geneva Glasgow
Hamburg Istanbul Kyoto Leeds Lyon Melbourne Miami Milan Montreal Mumbai Munich Naples Nice Osaka Oxford Porto Seattle Seville
Shanghai Sydney Toronto Turin Valencia Venice Zurich""".split()))

WORDS = """able acid apple arm army art ask baby back bag ball band bank barn base bath beach bean bed bell belt bench bike bird boat body
bone book boot bowl box boy brain bread brick bridge bread brush bus butter cake calm camel camera camp candle card care cart castle
chain chair chalk cheese circle city clay clean clock cloud coat coin cold cook corn cotton crab cream crown cup dance day desk dinner dish
doctor door dream dress drink drum dust eagle ear earth east edge egg empty engine evening eye face fall farm fast feather field finger fire
fish flag floor flower fly food foot forest fork friend fruit game garden gate gift girl glass glove gold grape green ground guitar hair
hammer hand happy hat head heart hill home honey hook house hungry ice iron island jacket jam jelly jewel juice jump kettle key king kitchen
kite knee knife ladder lake lamp land leaf leg lemon letter light lion lip lunch magic mango map market mask meal melon metal milk mirror
money monkey moon morning mother mountain mouth music nail neck needle nest night noise nose number ocean office oil onion orange oven page
paint panda paper park party peach pear pencil penguin pepper piano picnic pillow pilot pizza planet plant plate pocket pony potato pumpkin
puppet queen quick quiet rabbit radio rain ribbon rice ring river road robot rocket roof room rope rose sail salad salt sand school sea
seed shell ship shirt shoe silver sister sky sleep smile snow soap sock song soup spider spoon spring star stone storm street sugar summer
sun sweet table tail tea teacher tent tiger toast tomato tooth tower toy train tree truck tunnel turtle uncle valley violin voice wagon wall
water wave wheat wheel whistle wind window winter wolf wood wool yard year yellow zebra zero banana letter pepper balloon kitten coffee
cookie summer hello mississippi strawberry bubble rubber carrot cherry mirror rullama""".split()

ONSETS = "b c d f g h j k l m n p r s t v w z bl br ch cl cr dr fl fr gl gr pl pr sh sk sl sp st th tr".split()
VOWELS = "a e i o u a e i o ee oo ai ou".split()
CODAS = ["", "", "", "b", "d", "g", "k", "l", "m", "n", "p", "r", "s", "t", "ck", "ll", "nd", "ng", "nt", "rt", "sh", "st", "th"]


def invented(rng, longest=3):
    """A word that does not exist: one to three syllables, three to nine letters."""
    while True:
        word = "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS) for _ in range(rng.randint(1, longest)))
        if 3 <= len(word) <= 9:
            return word


def name(rng):
    return rng.choice(NAMES) if rng.random() < 0.5 else invented(rng, 2).capitalize()
