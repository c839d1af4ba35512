"""Irregular English forms that stemming does not join to their verb or noun."""

from __future__ import annotations

_FORMS = """
be:been,was,were become:became begin:began,begun break:broke,broken bring:brought build:built
burn:burnt buy:bought catch:caught child:children choose:chose,chosen come:came deal:dealt
draw:drew,drawn drink:drank,drunk drive:drove,driven eat:ate,eaten fall:fell,fallen feel:felt
fight:fought find:found fly:flew,flown forget:forgot,forgotten freeze:froze,frozen
give:gave,given go:went,gone grow:grew,grown hear:heard hide:hid,hidden hold:held keep:kept
know:knew,known lead:led lend:lent light:lit lose:lost make:made mean:meant meet:met pay:paid
person:people ride:rode,ridden ring:rang,rung rise:risen run:ran say:said seek:sought sell:sold
send:sent shake:shook,shaken shine:shone show:shown sing:sang,sung sink:sank,sunk sit:sat
sleep:slept speak:spoke,spoken spend:spent stand:stood steal:stole,stolen stick:stuck
strike:struck swear:swore,sworn swim:swam,swum take:took,taken teach:taught tell:told
think:thought throw:threw,thrown understand:understood wake:woke,woken wear:wore,worn win:won
write:wrote,written
"""

IRREGULAR = {
    form: base
    for base, forms in (entry.split(":") for entry in _FORMS.split())
    for form in forms.split(",")
}
"""Base form by irregular form. Forms that are words of their own ("left", "saw") are not here."""
