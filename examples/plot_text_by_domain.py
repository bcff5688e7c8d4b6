"""
Text by domain
==============

The same topics, written about in different places: a forum, a newspaper and product reviews. Each has words of its
own, for every topic and in general. Clustered together, a topic keeps one id in all of them, and the words that
define it can be read off the models, those shared and those particular to one place.
"""

# %%
# Documents are drawn from small vocabularies, so that the example needs no download: words of the topic that all
# domains use, words of the topic that one domain uses, and the domain's small talk.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

from mtclust import DMTRC
from mtclust.metrics import macro_nmi
from mtclust.text import TaskTfidf

COMMON = {
    "cooking": "oven recipe salt butter taste dish bake kitchen pan flour",
    "cycling": "bike wheel brake ride chain saddle helmet gear tyre road",
    "music": "song guitar band album concert voice piano drum stage melody",
    "gardening": "plant soil seed flower water garden root leaf grow weed",
}
OWN = {
    "forum": {"cooking": "yummy hob", "cycling": "fixie commute", "music": "gig riff", "gardening": "allotment slugs"},
    "news": {"cooking": "chef menu", "cycling": "tour stage", "music": "festival tour", "gardening": "park drought"},
    "reviews": {"cooking": "mixer lid", "cycling": "pump mount", "music": "amp cable", "gardening": "hose spade"},
}
TALK = {
    "forum": "thanks anyone lol guys help post question today think maybe",
    "news": "year people city said report week minister percent official public",
    "reviews": "product quality price bought stars delivery recommend works arrived returned",
}
rng = np.random.default_rng(0)
documents, topics, domains = [], [], []
for domain, talk in TALK.items():
    for topic, common in COMMON.items():
        for _ in range(30):
            words = [
                *rng.choice(common.split(), 4),
                *rng.choice(OWN[domain][topic].split(), rng.binomial(1, 0.6)),
                *rng.choice(talk.split(), 6),
                *rng.choice(" ".join(COMMON.values()).split(), 3),  # words strayed from any topic
            ]
            documents.append(" ".join(rng.permutation(words)))
            topics.append(topic)
            domains.append(domain)
print(documents[0])

# %%
# :class:`~mtclust.text.TaskTfidf` with a linear kernel is the default for text; the table stays sparse.
model = make_pipeline(TaskTfidf(), DMTRC(n_clusters=4, kernel="linear", random_state=0))
model.fit(documents, dmtrc__tasks=domains)
clusterer, terms = model[-1], model[0].get_feature_names_out()
print(f"NMI alone: {macro_nmi(topics, clusterer.single_task_labels_, domains):.2f}")
print(f"NMI together: {macro_nmi(topics, clusterer.labels_, domains):.2f}")

# %%
# ``coef_[task, cluster]`` holds one weight per word. Words with a large weight in all domains (the smallest of the
# three is drawn) define the topic; those that stand out in one domain are its own. A cluster has the same id in all
# domains.
coef = clusterer.coef_  # (tasks, clusters, words)
n_tasks, n_clusters, _ = coef.shape
figure, axes = plt.subplots(1, 1 + n_tasks, figsize=(13, 5.2), layout="constrained", sharey=True)
panels = [("all domains", coef.min(axis=0), 6)]
panels += [(f"only {task}", coef[i] - coef.mean(axis=0), 3) for i, task in enumerate(clusterer.tasks_)]
colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
for ax, (title, weights, shown) in zip(axes, panels):
    height = 1.0 / (shown + 1.5)
    for cluster in range(n_clusters):
        best = np.argsort(-weights[cluster])[:shown]
        places = cluster + height * (np.arange(shown) + 0.5)
        ax.barh(places, weights[cluster, best], height * 0.82, color=colours[cluster], alpha=0.35)
        for place, word in zip(places, best):
            ax.text(0.01 * weights.max(), place, terms[word], va="center", fontsize=9)
    ax.set_title(title, fontweight="bold" if title == "all domains" else "normal")
    ax.set_xticks([])
    ax.set_ylim(n_clusters, -0.1)
    ax.set_yticks(np.arange(n_clusters) + 0.42, [f"cluster {c}" for c in range(n_clusters)])
    ax.tick_params(length=0)
    ax.spines[["top", "right", "bottom", "left"]].set_visible(False)
plt.show()

# %%
# How the domains are related, and new documents:
print(clusterer.task_correlation_.round(2))
print(model.predict(["guitar song on stage", "my bike chain and the brake"], tasks="forum"))
