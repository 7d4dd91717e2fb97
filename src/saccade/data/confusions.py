"""Words that are typed for one another though each is right by itself: sound-alikes, and slips that make words."""

from collections.abc import Iterator

SETS = """
their there they're | your you're | its it's | to too two | loose lose | loosing losing | then than | affect effect
affects effects | accept except | advice advise | hear here | weather whether | were where we're wear | whose who's
quite quiet quit | brake break | by buy bye | passed past | piece peace | principal principle | right write rite
know no now | new knew | knows nose | great grate | beach beech | sea see | seas sees seize | son sun | week weak
 wait weight | whole hole | won one | would wood | of off | form from | though thought through threw
led lead | lay lie | breath breathe | chose choose | desert dessert | device devise
stationary stationery | complement compliment | council counsel | bare bear | board bored | flower flour | hair hare
heal heel | he'll hell | mail male | main mane | meat meet | pair pear | plain plane | poor pour | pray prey
rain reign rein | read red | road rode | role roll | sail sale | scene seen | seam seem | seams seems
sight site cite | steal steel | tail tale | vain vein | waist waste | way weigh | which witch | allowed aloud
bought brought | coarse course | dairy diary | angel angle | costume custom | collage college | conscience conscious
does dose | dual duel | fair fare | fir fur | forth fourth | formally formerly | guessed guest | hoarse horse
hour our are | hours ours | idle idol | knight night | knot not | loan lone | made maid | medal metal | miner minor
moral morale | pale pail | patience patients | peak peek | personal personnel | precede proceed | rap wrap
raise rays | sole soul | some sum | stair stare | stairs stares | statue statute | straight strait | suite sweet
throne thrown | tide tied | toe tow | trail trial | vary very | wander wonder | warn worn | wary weary | woman women
word world | thing think | things thinks | an and | as has | his is | on one | sign sing | not note | the they
them then | that than | lets let's | were we're | well we'll | ill I'll | wont won't | cant can't | shell she'll
bad bed | bit but | cold could | come came | feel fell fill | felt left | find fine | for four | full fool | god good
had hand | head heard herd | hope hop | live leave life | lives leaves | like link | lost last | many may | men man
most must | other order | own won | party part | place plays | plan plant | price prize
reach rich | said sad side | safe save | same some | saw was | sea she | shop ship | since science | sit seat
slip sleep | small smell | soon son | stay say | still steal | such search | sure shore | taken token | tell till
test taste | tree three | tried tired | try tray | turn torn | until unit | want went won't | wash watch
wear were | when went | who how | work walk | yes yet | able about | after alter
aisle isle | ate eight | blew blue | cell sell | cells sells | cent sent scent | cereal serial | dear deer | die dye
dying dyeing | fined find | flew flu | heir air | higher hire | hymn him | in inn | it its
lesson lessen | mind mined | missed mist | morning mourning | packed pact | pause paws | presence presents
profit prophet | rough ruff | route root | sew so sow | shore sure | story storey | tea tee | team teem
time thyme | tires tries | tough though | used use | weak week | whine wine
woke walk | yolk yoke | everyday every | maybe may | whether wether | payed paid | layed laid
 thorough through | trough through | casual causal | county country | decent descent
eligible illegible | emigrate immigrate | ensure insure | envelop envelope | expand expend | expect except
immoral immortal | lightening lightning | perspective prospective | persecute prosecute | respectfully respectively
sever severe | simulate stimulate | suit suite | thrash trash | track tract | uninterested disinterested
united untied | unit unite | adopt adapt | adapted adopted | addition edition | allusion illusion | ally alley
assess asses | assure ensure | attain obtain | beside besides | bread breed | careless carless | champagne campaign
clean clear | close clothes | corps corpse | crash crush | curb curve | daily dally | dinner diner | disburse disperse
elicit illicit | faint feint | farm form | floor flour | fiend friend | gorilla guerrilla | hanger hangar | holy wholly
human humane | hungry angry | interned interred | later latter | latter letter | leased least | liable libel
local locale | message massage | mistake mistook | nor not | of have | pedal peddle | pole poll | quite quote
recent resent | require acquire | rise raise | root rout | sever sewer | shear sheer | soar sore | sort short
steak stake | strange stranger | tack tact | tenant tenet | thank think | thin thing | trip trap | weather wether
"""
AFTER_MODALS = {"could", "would", "should", "might", "must"}
"""Only behind these is "of" typed for "have"."""


def confusion_sets() -> dict[str, tuple[str, ...]]:
    """For every word of the sets, the words that are typed for it."""
    found: dict[str, dict[str, None]] = {}
    for group in _groups():
        for word in group:
            found.setdefault(word, {}).update(dict.fromkeys(other for other in group if other != word))
    return {word: tuple(others) for word, others in found.items()}


def confused_with(word: str, before: str) -> tuple[str, ...]:
    """What may be typed for a word, in lower case, behind the word before it."""
    others = CONFUSED.get(word, ())
    if word in ("of", "have"):
        others = tuple(other for other in others if other not in ("of", "have"))
        if word == "have" and before in AFTER_MODALS:
            return (*others, "of")
    return others


def _groups() -> Iterator[list[str]]:
    for line in SETS.strip().splitlines():
        for group in line.lower().split("|"):
            yield group.split()


CONFUSED = confusion_sets()
