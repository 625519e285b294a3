#!/usr/bin/env python3
"""Writes the text that the example trains on: the log of a harbour that does not exist.

Usage: make_text.py [BYTES] > text.txt

The text comes from the grammar below and a small generator of its own, so it is the same on every
machine. It has structure at several ranges for a model to find: spelling, agreement, dates that
count up, quantities that go with their goods, ships that leave only after they came.
"""

import sys

SHIPS = ["Amber Lark", "Grey Heron", "Marigold", "North Star", "Old Faithful", "Patience",
         "Quiet Anne", "Red Kestrel", "Saint Orla", "Second Wind", "Silver Eel", "Winter Rose"]
CAPTAINS = ["Alder", "Brandt", "Corrigan", "Dunmore", "Ellis", "Farrow", "Greaves", "Hollis"]
PORTS = ["Ashby", "Brackwater", "Carrow", "Dunsea", "Eastmere", "Fenwick", "Gull Point"]
GOODS = [("barrels", "salt herring"), ("barrels", "lamp oil"), ("sacks", "barley"),
         ("sacks", "flour"), ("crates", "oranges"), ("crates", "candles"), ("bolts", "blue linen"),
         ("casks", "cider"), ("tons", "slate"), ("coils", "new rope")]
WEATHER = ["fog until noon", "a light wind from the west", "rain all day", "clear and cold",
           "a heavy swell", "hail in the morning", "warm, with no wind at all"]
DEEDS = ["The harbour master slept badly", "The bell was rung for the fog", "Two nets were mended",
         "The crane was greased", "A gull stole the clerk's bread", "The lighthouse was painted",
         "The tide stood higher than the mark", "Children sang on the pier"]
MONTHS = [("January", 31), ("February", 28), ("March", 31), ("April", 30), ("May", 31),
          ("June", 30), ("July", 31), ("August", 31), ("September", 30), ("October", 31),
          ("November", 30), ("December", 31)]
NUMBERS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve",
           "twenty", "thirty", "forty"]


class Dice:
    """A linear congruential generator (the constants are Knuth's)."""

    def __init__(self, seed):
        self.state = seed

    def roll(self, sides):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % sides

    def pick(self, things):
        return things[self.roll(len(things))]


def arrival(dice, docked):
    ship = dice.pick([s for s in SHIPS if s not in docked])
    unit, good = dice.pick(GOODS)
    captain = dice.pick(CAPTAINS)
    docked[ship] = captain
    text = f"The {ship}, Captain {captain}, came in from {dice.pick(PORTS)}"
    return text + f" with {dice.pick(NUMBERS)} {unit} of {good}."


def departure(dice, docked):
    ship = dice.pick(list(docked))
    captain = docked.pop(ship)
    return f"The {ship} sailed for {dice.pick(PORTS)}; Captain {captain} paid what was owed."


def day(dice, docked):
    lines = [f"Weather: {dice.pick(WEATHER)}."]
    for _ in range(1 + dice.roll(3)):
        kind = dice.roll(5)
        if kind < 2 and len(docked) < 6:
            lines.append(arrival(dice, docked))
        elif kind < 4 and docked:
            lines.append(departure(dice, docked))
        else:
            lines.append(dice.pick(DEEDS) + ".")
    lines.append(f"Ships in the harbour at night: {len(docked)}.")
    return "\n".join(lines)


def log(size):
    dice, docked, out, length, year = Dice(1), {}, [], 0, 1801
    while True:
        for month, days in MONTHS:
            for number in range(1, days + 1):
                entry = f"{number} {month} {year}\n{day(dice, docked)}\n\n"
                out.append(entry)
                length += len(entry)
                if length >= size:
                    return "".join(out)[:size]
        year += 1


sys.stdout.write(log(int(sys.argv[1]) if len(sys.argv) > 1 else 98304))
