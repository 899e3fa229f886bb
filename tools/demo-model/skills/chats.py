"""Whole conversations: one skill alone, or several turns that mix them."""

from split import held_out

from . import arithmetic, facts, letters, stories, talk, tool_use
from .words import name

MINE = ["My name is {n}.", "I am {n}.", "I'm {n}.", "Hello, my name is {n}.", "Hi, I am {n}.", "People call me {n}."]
ASK_MINE = ["What is my name?", "Do you know my name?", "Who am I?", "what's my name", "Can you remember my name?"]
SKILLS = {
    "arithmetic": (arithmetic.case, 26), "letters": (letters.case, 22), "facts": (facts.case, 12), "talk": (talk.case, 5),
    "system": (talk.system, 7), "story": (stories.case, 5), "tools": (tool_use.case, 14), "honesty": (talk.honesty, 4), "unknown": (facts.unknown, 1),
}
# In mixed chats; tools come with their own turns.
MIXED = ["arithmetic", "arithmetic", "letters", "letters", "facts", "facts", "talk", "story", "honesty"]


def conversation(rng, held=False, skill=None):
    """A dict of skill, messages (answers included), tools, thinking and how to check the answer."""
    if skill == "memory" or (skill is None and rng.random() < 0.02):
        return memory(rng, held)
    if skill is None:
        names, weights = zip(*((key, weight) for key, (_, weight) in SKILLS.items()))
        skill = rng.choices(names, weights)[0]
    case = SKILLS[skill][0](rng, held)
    thinking = rng.random() < (0.3 if skill == "arithmetic" else 0.12)
    messages = [{"role": "system", "content": case["system"]}] if "system" in case else []
    if not messages and rng.random() < 0.05:
        messages.append({"role": "system", "content": rng.choice(talk.PLAIN)})
    if not held and skill in MIXED and rng.random() < 0.25:
        for _ in range(rng.choice([1, 1, 2, 3])):
            earlier = SKILLS[rng.choice(MIXED)][0](rng, False)
            messages += [{"role": "user", "content": earlier["user"]}, {"role": "assistant", "content": earlier["answer"]}]
    messages.append({"role": "user", "content": case["user"]})
    tools = case.get("tools", [])
    if "call" in case:
        call = {"function": case["call"]}
        messages.append({"role": "assistant", "tool_calls": [call], **thought(case["thought"], thinking)})
        messages.append({"role": "tool", "name": case["call"]["name"], "content": case["result"]})
        messages.append({"role": "assistant", "content": case["answer"], **thought(case["result_thought"], thinking)})
    else:
        if rng.random() < 0.06:
            tools = tool_use.some_tools(rng)
        messages.append({"role": "assistant", "content": case["answer"], **thought(case["thought"], thinking)})
    return {"skill": case["skill"], "messages": messages, "tools": tools, "thinking": thinking, "check": case["check"]}


def thought(text, thinking):
    return {"reasoning": text} if thinking else {}


def memory(rng, held):
    """Something said before, asked for later."""
    while True:
        who = name(rng)
        if held_out("memory", who) == held:
            break
    messages = [{"role": "user", "content": rng.choice(MINE).format(n=who)}, {"role": "assistant", "content": f"Nice to meet you, {who}!"}]
    if rng.random() < 0.5:
        between = SKILLS[rng.choice(MIXED)][0](rng, held)
        messages += [{"role": "user", "content": between["user"]}, {"role": "assistant", "content": between["answer"]}]
    messages += [{"role": "user", "content": rng.choice(ASK_MINE)}, {"role": "assistant", "content": f"Your name is {who}."}]
    return {"skill": "memory", "messages": messages, "tools": [], "thinking": False, "check": {"kind": "contains", "value": [who]}}
