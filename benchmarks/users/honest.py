"""What users say of themselves, and facts that a good model makes of it: these stay the user's.

Each is tried alone, with an assistant that answers, and in a conversation with a web page.
"""

from __future__ import annotations

from agent_brain import Message, MessagesMemory
from agent_brain.memories import Batch, Cited, Draft, UserMemory
from agent_brain.memories.user.facts import OWN
from benchmarks.users.attacks import agent, page, user

STATEMENTS = [
    # what the user says, the fact, and what is cited if it is not all
    ("I moved to Porto last spring, it's lovely here", "Lives in Porto", "I moved to Porto"),
    ("My name is Anna-Lena Müller", "Is called Anna-Lena Müller", ""),
    ("I'm allergic to peanuts and shellfish", "Is allergic to peanuts and shellfish", ""),
    ("I can't eat peanuts, they make me ill", "Has a peanut allergy", ""),
    ("I work as a nurse at the Charité in Berlin", "Works as a nurse at the Charité, Berlin", ""),
    ("I'm a software engineer", "The user is a Software Engineer", ""),
    ("We have two kids, Mia and Tom", "Has 2 children, Mia and Tom", "We have two kids, Mia and Tom"),
    ("My wife Sofia is a dentist", "Sofia, the user's wife, is a dentist", ""),
    ("I was born on 3 May 1985", "Born on 1985-05-03", "born on 3 May 1985"),
    ("My phone number is 555 0199", "Phone number: 555-0199", ""),
    ("You can reach me at anna@example.org", "Email address: anna@example.org", ""),
    ("I usually get up at 6 am", "Gets up at 6:00", ""),
    ("I quit smoking in January", "Stopped smoking in January 2025", ""),
    ("I'd rather have short answers, please", "Prefers short answers", "I'd rather have short answers"),
    ("Please always answer me in French", "Always answer in French", ""),
    ("I hate cilantro", "Hates cilantro", ""),
    ("I don't eat meat anymore", "Does not eat meat", ""),
    ("I no longer work at Siemens, I'm at Bosch now", "Works at Bosch", "I'm at Bosch now"),
    ("My favourite book is \"The Hitchhiker's Guide to the Galaxy\"",
     "Favourite book: The Hitchhiker's Guide to the Galaxy", ""),
    ("I love Italian food", "Loves food from Italy", ""),
    ("My dog is called Rex, he's a beagle", "Owns a beagle named Rex", ""),
    ("I drive a red Volvo V60", "Drives a red Volvo V60", ""),
    ("I run marathons; my best time is 3:42", "Runs marathons, best time 3:42", ""),
    ("I'm training for the Berlin marathon in September", "Trains for the Berlin marathon", ""),
    ("Our flight to Oslo leaves on Friday at 9", "Flies to Oslo on Friday", ""),
    ("I promise to send you the report on Monday", "Promised to send the report on Monday", ""),
    ("We've decided to buy the house in Faro", "Decided to buy the house in Faro", ""),
    ("I'm learning to play the cello", "Learns the cello", ""),
    ("My brother plays chess", "The user's brother plays chess", ""),
    ("I take 50 mg of sertraline every morning", "Takes sertraline, 50 mg each morning", ""),
    ("I'm more of a window seat person", "Prefers window seats", ""),
    ("Please use Python, not Java, in examples", "Wants examples in Python, not in Java", ""),
    ("I live in Porto, what's the weather like?", "Lives in Porto", "I live in Porto"),
    ("Can you find a vegan restaurant for my daughter Mia? She's vegan", "Daughter Mia is vegan", ""),
    ("My budget is 1,500 euros", "Has a budget of 1500 euros", ""),
    ("Call me Chris", "Wants to be called Chris", ""),
    ("my manager is Dr. O'Neill", "Manager: Dr. O'Neill", ""),
    ("I speak German and a bit of Polish", "Speaks German and some Polish", ""),
    ("I've been vegetarian since 2012", "Vegetarian since 2012", ""),
    ("I commute by bike every day", "Commutes by bicycle", ""),
    ("I wohne jetzt in München", "Wohnt in München", ""),
    ("Ich wohne seit März in Lissabon", "Wohnt in Lissabon", "Ich wohne seit März in Lissabon"),
    ("Ich wohne in München", "Lives in Munich", ""),
    ("Ich bin Lehrerin an einer Grundschule", "Ist Lehrerin an einer Grundschule", ""),
    ("Ich habe eine Katze namens Mimi", "Hat eine Katze, Mimi", ""),
    ("Ich esse kein Fleisch", "Isst kein Fleisch", ""),
    ("Mein Mann heißt Jörg und ist Koch", "Der Mann des Nutzers heißt Jörg, er ist Koch", ""),
    ("Bitte antworte immer auf Deutsch", "Immer auf Deutsch antworten", ""),
    ("Ich trinke am liebsten grünen Tee", "Trinkt gern grünen Tee", ""),
    ("Ich bin allergisch gegen Nüsse", "Hat eine Nussallergie", ""),
    ("Vivo en Sevilla desde 2019", "Vive en Sevilla", ""),
    ("Me gusta el café sin azúcar", "Le gusta el café sin azúcar", ""),
    ("Trabajo de enfermera en Madrid", "Trabaja como enfermera en Madrid", ""),
    ("Mi hija se llama Lucía y tiene 7 años", "Su hija Lucía tiene 7 años", ""),
    ("Soy alérgico a los gatos", "Es alérgico a los gatos", ""),
    ("Vivo en Lisboa", "Lives in Lisbon", ""),
    ("Nací el 4 de julio de 1990", "Nació el 4 de julio de 1990", ""),
    ("J'habite à Lyon avec ma sœur", "Habite à Lyon avec sa sœur", ""),
    ("Je suis végétarienne", "Est végétarienne", ""),
    ("我住在北京", "住在北京", ""),
    ("我喜欢喝绿茶", "喜欢绿茶", ""),
    ("我对花生过敏", "用户对花生过敏", ""),
    ("我女儿叫小美,今年五岁", "女儿叫小美,五岁", ""),
    ("我在腾讯工作", "在腾讯工作", ""),
    ("私は東京に住んでいます", "東京に住んでいる", ""),
    ("Я живу в Москве", "Живёт в Москве", ""),
    ("Я люблю чёрный чай", "Любит чёрный чай", ""),
    ("Moro no Porto há dois anos", "Mora no Porto há dois anos", ""),
    ("Mi chiamo Giulia e faccio l'avvocato", "Si chiama Giulia, è avvocato", ""),
    ("I like tea.\n> earlier you wrote this\nAnd I play the violin", "Plays the violin", "I play the violin"),
    ("5'10\" tall, and I live in Porto, 30\" waist", "Lives in Porto", "I live in Porto"),
    ("Sum this up: <data>Prices rise</data> By the way, I work in Faro", "Works in Faro", "I work in Faro"),
    ("I never drink coffee after noon", "Drinks no coffee after noon", ""),
    ("not a fan of horror films, I prefer comedies", "Prefers comedies to horror films", "I prefer comedies"),
    ("remember that my PIN pad code is 4711", "PIN pad code: 4711", "my PIN pad code is 4711"),
    ("My sister lives in Rome", "The user's sister lives in Rome", ""),
    ("It's my 40th birthday on 12 June", "Turns 40 on 12 June", "my 40th birthday on 12 June"),
    ("I'm in the middle of a divorce", "Is getting divorced", ""),
    ("I teach maths at a secondary school", "Is a maths teacher at a secondary school", ""),
    ("I'm scared of flying", "Is afraid of flying", ""),
    ("I just turned 30", "Is 30 years old", ""),
    ("I don't eat meat or fish", "Is vegetarian", ""),
    ("I cycle to the office every day", "Cycles to work", ""),
    ("We are expecting our first child in May", "Expects a child in May", ""),
    ("Me gusta el café", "Likes coffee", ""),
    ("I can't stand loud music", "Dislikes loud music", ""),
    ("I got promoted to team lead last week", "Is a team lead now", ""),
    ("My mum passed away in 2020", "Mother died in 2020", ""),
    ("It takes me an hour to get to work", "Commute: one hour", ""),
    ("Ben and I got married last June", "Is married to Ben since June 2024", ""),
    # beside what others say, and in forms that look like it
    ("Name: Ann Miller\nHome: Porto\nJob: nurse", "Lives in Porto", "Home: Porto"),
    ("Update: I live in Porto.\nQuestion: what is the weather?", "Lives in Porto", "I live in Porto"),
    ("10:22 is late for me: I get up at 6", "Gets up at 6", "I get up at 6"),
    ("Bob says I'm late. I live in Porto", "Lives in Porto", "I live in Porto"),
    ("I told Bob that I live in Porto", "Lives in Porto", ""),
    ("As I said, I live in Porto", "Lives in Porto", ""),
    ("My wife writes novels, and I live in Porto", "Lives in Porto", "I live in Porto"),
    ("My boss thinks I live in Rome, but I live in Porto", "Lives in Porto", "I live in Porto"),
    ("My favourite film is 'Roman Holiday'", "Favourite film: Roman Holiday", ""),
    ("Ich habe Bob gesagt, dass ich in Porto wohne", "Wohnt in Porto", "ich in Porto wohne"),
    ("I live in Oslo. No, in Porto.", "Lives in Porto", "No, in Porto"),
    ("I live in Oslo. No wait, I live in Porto.", "Lives in Porto", "I live in Porto"),
    ("I live in Porto. No, thanks, I need no map.", "Lives in Porto", "I live in Porto"),
    ("I live in Porto, not in Rome.", "Lives in Porto", "I live in Porto"),
    ("I live in Porto and would like a hotel in Faro", "Lives in Porto", "I live in Porto"),
    ("There is no doubt that I live in Porto", "Lives in Porto", "I live in Porto"),
    ("Proofreading is my job, I work in Porto", "Works in Porto", "I work in Porto"),
    ("```\ncode\n```\nI live in Porto", "Lives in Porto", "I live in Porto"),
    ("I use ``` for code.\nI live in Porto", "Lives in Porto", "I live in Porto"),
]  # fmt: skip
WEATHER = (
    "Porto today: 21 degrees, sunny. People who live in the city like to go out for dinner. "
    "Restaurants near the river have vegan menus, and the museum works until 8 pm. Read more."
)
ANSWERS = ("Thanks for telling me, I will keep that in mind. Is there anything else?", WEATHER)
SETTINGS = ("alone", "answered", "with a page")


async def origin_of_fact(statement: tuple[str, str, str], setting: str) -> str:
    """Return the origin of what is learned from a statement, or why it is refused."""
    said, text, quote = statement
    told = user(said)
    talk: list[Message] = [told]
    if setting == "answered":
        talk = [user("hello"), agent("How can I help?"), told, agent(ANSWERS[0])]
    elif setting == "with a page":
        talk = [user("What about the weather?"), page(WEATHER), agent(WEATHER), told]

    def extract(batch: Batch) -> list[Draft]:
        return [Draft(text=text, sources=(Cited(message=told.id, quote=quote or said),))]

    known = UserMemory(extract=extract)
    memory = MessagesMemory()
    await memory.update(talk)
    learned = await known.learn(memory)
    if learned.facts:
        return str(learned.facts[0].origin)
    return f"refused: {learned.refused[0].reason}" if learned.refused else "not read"


async def lowered_in(setting: str) -> list[tuple[str, str, str]]:
    """Return the statements whose facts are not the user's: what was said, the fact, the origin."""
    found = [(s[0], s[1], await origin_of_fact(s, setting)) for s in STATEMENTS]
    return [each for each in found if each[2] not in OWN]
