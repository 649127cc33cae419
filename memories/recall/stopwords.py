"""English words that say how something is said or asked, not what it is about."""

from __future__ import annotations

# The classic list of information retrieval, with contractions as they are left when the apostrophe
# splits them ("don", "t") and as people type them without one ("dont").
ENGLISH = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being
    below between both but by can cannot could did do does doing down during each few for from
    further had has have having he her here hers herself him himself his how i if in into is it its
    itself let me more most my myself no nor not of off on once only or other ought our ours
    ourselves out over own same she should so some such than that the their theirs them themselves
    then there these they this those through to too under until up very was we were what when where
    which while who whom why with won would you your yours yourself yourselves
    will shall may might must
    arent cant couldnt didnt doesnt dont hadnt hasnt havent hed hell hes heres hows id ill im ive
    isnt lets mustnt shant shed shell shes shouldnt thats theres theyd theyll theyre theyve wasnt
    wed well were weve werent whats whens wheres whos whys wont wouldnt youd youll youre youve
    s t d m ll re ve don didn doesn isn wasn wouldn couldn shouldn hasn haven hadn aren weren ain
    """.split()
)

# Words of asking: "What kind of cake did Ann say …" is no more about kinds and saying than about
# "what". Stems; left out of questions only.
ASKING = frozenset(
    "say said mention tell told talk discuss describ kind type mani often much".split()
)
