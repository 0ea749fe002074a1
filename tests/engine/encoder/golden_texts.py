"""The texts of the golden set: 200 of 1 to 512 tokens in several languages, and queries with documents. Pure."""

from itertools import cycle, islice

MAX_TOKENS = 512
"""The model's positions; sentence-transformers cuts at 256 unless it is told so."""
NUM_TEXTS = 200
_SENTENCES = {
    "en": "The harbour was quiet before dawn, and only the gulls complained about the late fishing boats.",
    "de": "Im Frühjahr pflanzen die Gärtner Tomaten, Bohnen und Kräuter in die noch kühle, feuchte Erde.",
    "fr": "Les voyageurs attendaient sur le quai pendant que la neige recouvrait lentement les rails rouillés.",
    "es": "El médico explicó con paciencia por qué la vacuna protege también a quienes no pueden recibirla.",
    "pt": "A orquestra ensaiou durante horas até que o maestro, satisfeito, pousou finalmente a batuta.",
    "it": "Il fornaio accende il forno alle tre di notte, quando la città dorme e le strade sono vuote.",
    "nl": "Na de storm lagen overal takken, dakpannen en een verdwaalde fiets midden op het grasveld.",
    "pl": "Naukowcy zmierzyli temperaturę oceanu i porównali ją z danymi sprzed pięćdziesięciu lat.",
    "ru": "Старый мост через реку закрыли на ремонт, и теперь до школы приходится идти дольше обычного.",
    "tr": "Kütüphanede unutulan mektup, yıllar sonra yeni sahibinin hayatını tamamen değiştirdi.",
    "ar": "فتح الباعة متاجرهم مبكرا لأن السياح وصلوا إلى المدينة القديمة قبل شروق الشمس",
    "hi": "किसान ने बारिश से पहले खेत जोत लिया और बीज अपने पड़ोसी के साथ बाँट लिए।",
    "zh": "工程师在会议上解释了新算法为什么更快，并展示了三个月的测量结果。",
    "ja": "駅前の小さな本屋は、今日も閉店まで静かな客でにぎわっていた。",
    "ko": "할머니는 매년 가을 마을 사람들과 함께 김치를 담그고 이야기를 나눈다.",
    "el": "Ο ναυτικός έγραψε στο ημερολόγιό του ότι ο άνεμος άλλαξε ξαφνικά κατεύθυνση.",
    "code": "def mean(rows):\n    return [sum(row) / len(row) for row in rows if row]  # skips empty rows\n",
    "mixed": "Order #4711: 3 × USB-C cables @ €9.99 (ref: A-42/b), ship to 10115 Berlin by 2024-11-17!",
}


def texts() -> list[str]:
    """The texts, longer and longer within each language; the longest ones are cut."""
    languages = list(_SENTENCES)
    return [_text(_SENTENCES[languages[number % len(languages)]], number) for number in range(NUM_TEXTS)]


def _text(sentence: str, number: int) -> str:
    """A text of about ``number`` times two and a half tokens, whatever the language's share of letters to a token."""
    words = sentence.split(" ") if " " in sentence else list(sentence)
    joint = " " if " " in sentence else ""
    count = max(1, round(number * (2.5 if joint == "" else 1.6)))
    start = number % len(words)
    return joint.join(islice(cycle([*words[start:], *words[:start]]), count))


QUERIES = (
    "How do I bake bread at home?",
    "Shares fell after the bank's report",
    "a doctor treats a patient",
    "Wie wird das Wetter am Meer?",
    "python function that computes an average",
    "music for a quiet evening",
)
DOCUMENTS = (
    "Mix flour, water, salt and yeast, and let the dough rise overnight.",
    "The stock market closed lower on Friday after weak earnings.",
    "A nurse measures the blood pressure of an old man.",
    "Strong winds and rain are expected on the coast this weekend.",
    "def mean(values): return sum(values) / len(values)",
    "She plays the cello softly after dinner.",
    "Der Bäcker öffnet seinen Laden um sechs Uhr.",
    "Die Zentralbank erhöht die Zinsen um einen halben Prozentpunkt.",
    "The surgeon washed her hands before the operation.",
    "An der Nordsee wird es morgen sonnig und windig.",
    "for (int i = 0; i < n; ++i) total += values[i];",
    "The orchestra rehearsed the symphony all day.",
    "Sourdough needs a starter that is fed with flour every day.",
    "Investors sold their bonds in a hurry.",
    "Le médecin prescrit un antibiotique.",
    "Snow is falling in the mountains.",
    "SELECT AVG(price) FROM orders GROUP BY country;",
    "He listens to jazz records when it is dark outside.",
    "The oven must be hot before the loaf goes in.",
    "Profits of the insurer doubled within a year.",
)
