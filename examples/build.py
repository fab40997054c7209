"""Writes the example library's PDF, Office and image files, whose text stands here; all others are edited as they are.

    python -m pip install reportlab python-docx python-pptx openpyxl pillow
    python examples/build.py

The results are committed, so nobody needs this to run Stemma. reportlab is used nowhere else.
"""

from pathlib import Path

import docx
from openpyxl import Workbook
from openpyxl.styles import Font
from PIL import Image, ImageDraw, ImageFont
from pptx import Presentation
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Flowable, PageBreak, Paragraph, SimpleDocTemplate, Spacer

LIBRARY = Path(__file__).resolve().parent / "library"
FONT = "DejaVuSerif.ttf"

CCD_CALIBRATION = [
    [
        ("Title", "Calibrating the CCD camera"),
        (
            "BodyText",
            "Every exposure of the camera holds three things that did not come from the sky: the electronic offset of the "
            "read-out, the charge that heat releases in the silicon, and the shadows of dust and of the tube. Calibration frames "
            "measure each of them, so that they can be taken out again.",
        ),
        ("Heading2", "1. Bias frames"),
        (
            "BodyText",
            "A bias frame is the shortest exposure the camera can make, with the shutter closed. It shows the offset alone. Take "
            "fifty of them and combine them by their median. The offset of our camera is about 1,050 counts; if it differs by more "
            "than thirty counts from last month's, tell the technician.",
        ),
        (
            "BodyText",
            "The read-out noise, measured as the scatter between two bias frames divided by the square root of two, is 9.3 "
            "electrons. The gain is 1.4 electrons per count.",
        ),
    ],
    [
        ("Heading2", "2. Dark frames"),
        (
            "BodyText",
            "Dark frames are as long as the exposures of the night, with the shutter closed. The dark current doubles with every "
            "six degrees, therefore the sensor must have the same temperature as later in the night.",
        ),
        (
            "BodyText",
            "Before dark frames are taken the camera is cooled to -15 °C, and then left alone for twenty minutes. Do not cool it "
            "by more than five degrees a minute: a faster change may crack the window of the sensor chamber.",
        ),
        (
            "BodyText",
            "Twenty dark frames of each exposure time are enough. They may be used for four weeks; the library of dark frames is "
            "in the folder named after the month.",
        ),
    ],
    [
        ("Heading2", "3. Flat fields"),
        (
            "BodyText",
            "A flat field is a picture of an evenly lit surface. It shows the dust on the filters as grey rings and the darkening "
            "towards the corners. We take flats on the twilight sky, opposite the setting Sun, twenty degrees from the zenith.",
        ),
        (
            "BodyText",
            "Expose so that the mean is between 20,000 and 30,000 counts, about half of the full well. Move the telescope by one "
            "arcminute between two flats, so that stars fall on different pixels. Take at least fifteen flats in each filter.",
        ),
        ("Heading2", "4. Putting it together"),
        (
            "BodyText",
            "Calibrated frame = (raw frame - master dark) / (master flat, divided by its own mean). The master bias is "
            "already contained in the dark; subtract it separately only when a dark has to be scaled to another time.",
        ),
    ],
    [
        ("Heading2", "5. Faults and their causes"),
        ("BodyText", "<b>Bright columns</b> after a warm night: take new dark frames; the map of defects is from March."),
        (
            "BodyText",
            "<b>Rings that calibration does not remove:</b> the camera was turned after the flats were taken. Flats are valid only "
            "for the angle at which they were made.",
        ),
        (
            "BodyText",
            "<b>Frost in the middle of the picture:</b> the desiccant is used up. Bake the cartridge for four hours at 175 °C "
            "and screw it back in while it is still warm.",
        ),
    ],
]

DOME_MANUAL = [
    [
        ("Title", "The dome: short manual"),
        (
            "BodyText",
            "The dome has a diameter of 6.5 metres and weighs four and a half tonnes. It was built in 1996 by the shipyard at "
            "Varnes, which is why its shutters close like the hatches of a freighter.",
        ),
        ("Heading2", "Opening"),
        (
            "BodyText",
            "Switch on the main breaker, wait for the green lamp, hold the key in position 2 for three seconds. The upper shutter "
            "opens first and takes ninety seconds. Never open the lower shutter before the upper one has stopped.",
        ),
        ("Heading2", "Turning"),
        (
            "BodyText",
            "A full turn takes four minutes. In automatic mode the dome follows the telescope and moves whenever the slit is more "
            "than five degrees off. Stand clear of the rail.",
        ),
    ],
    [
        ("Heading2", "If the power fails"),
        (
            "BodyText",
            "The shutters can be closed by hand. The crank is kept behind the grey panel at the foot of the north pier. It "
            "takes one hundred and forty turns, clockwise. Two people should take turns; the brake holds by itself.",
        ),
        ("Heading2", "Maintenance"),
        (
            "BodyText",
            "The rail is greased every March with lithium grease, never with oil. The rubber seals are rubbed with talcum before "
            "the first frost. The slip rings were last replaced in 2021 and should last ten years.",
        ),
    ],
]

FOOD_SAFETY = [
    [
        ("Title", "Food safety in the teaching kitchen"),
        ("Heading2", "Temperatures"),
        (
            "BodyText",
            "Bacteria multiply fastest between 5 and 60 °C. Food may be in this range for two hours altogether, or for one hour "
            "when the room is warmer than 32 °C; after that it is thrown away.",
        ),
        (
            "BodyText",
            "Poultry is done at 74 °C in the thickest part, minced meat at 71 °C, fish at 63 °C. Cooked rice is cooled within an "
            "hour and kept for one day at most, because the spores of Bacillus cereus survive cooking.",
        ),
    ],
    [
        ("Heading2", "Cooling"),
        (
            "BodyText",
            "Hot stock is divided into flat trays no more than seven centimetres deep and set in ice water. It must fall from 60 "
            "to 21 °C within two hours and to 5 °C within four more.",
        ),
        ("Heading2", "Allergens"),
        (
            "BodyText",
            "Fourteen allergens must be named to guests in the European Union. The list hangs beside the pass. Lupin and celery "
            "are the two that are most often forgotten.",
        ),
        ("Heading2", "Hands"),
        ("BodyText", "Wash them for twenty seconds: before work, after raw meat, after eggs, after the telephone."),
    ],
]


def write_pdf(path: str, title: str, pages: list[list[tuple[str, str]]]) -> None:
    styles = getSampleStyleSheet()
    styles["BodyText"].fontSize, styles["BodyText"].leading = 11, 15
    flow: list[Flowable] = []
    for page in pages:
        for style, text in page:
            flow += [Paragraph(text, styles[style]), Spacer(1, 6)]
        flow.append(PageBreak())
    SimpleDocTemplate(str(LIBRARY / path), pagesize=A4, title=title, author="Brennfels", invariant=1).build(flow)


def write_laser_safety() -> None:
    document = docx.Document()
    document.core_properties.title = "Laser safety"
    document.core_properties.author = "Hedwig Marlow"
    document.add_heading("Laser safety", level=1)
    document.add_paragraph(
        "The green pointer with which guides show the constellations has a wavelength of 532 nanometres and a power of 5 "
        "milliwatts. It belongs to class 3R: a glance into the beam can hurt, and a pilot can be blinded from kilometres away."
    )
    document.add_heading("Rules", level=2)
    for rule in (
        "Only guides who have signed the yearly instruction use the pointer.",
        "It is never pointed below 30 degrees above the horizon, and never towards an aircraft, however far away.",
        "Between 21:40 and 22:10 the evening flight to Halden passes; the pointer stays in its holster.",
        "The key that arms the pointer is kept on hook 9. The lamp above the door shows violet while the laser is armed.",
    ):
        document.add_paragraph(rule, style="List Number")
    document.add_heading("Classes of lasers", level=2)
    rows = [
        ("Class", "Power of visible light", "Danger"),
        ("1", "below 0.39 mW", "none"),
        ("2", "up to 1 mW", "the blink reflex protects"),
        ("3R", "up to 5 mW", "possible injury when staring"),
        ("3B", "up to 500 mW", "injury by the direct beam"),
        ("4", "above 500 mW", "injury also by scattered light; fire"),
    ]
    table = document.add_table(rows=0, cols=3)
    for row in rows:
        for cell, words in zip(table.add_row().cells, row, strict=True):
            cell.text = words
    document.add_heading("After an accident", level=2)
    document.add_paragraph(
        "Whoever was hit sees an ophthalmologist within twenty-four hours, even if nothing hurts: the retina has no nerves for "
        "pain. The laser safety officer writes the report."
    )
    document.save(str(LIBRARY / "observatory/handbook/safety/laser-safety.docx"))


def write_perseids_report() -> None:
    document = docx.Document()
    document.core_properties.title = "The Perseids of 2024"
    document.add_heading("The Perseids of 2024", level=1)
    document.add_paragraph(
        "Three observers counted on two nights. The maximum was expected for 12 August at 14 hours Universal Time, in daylight, so "
        "the nights before and after it were of equal interest."
    )
    document.add_heading("Results", level=2)
    document.add_paragraph(
        "In 3.0 hours of clear sky we counted 166 Perseids. The best hour, from 23:30 to 00:30 on 12 August, brought 71. Corrected for "
        "the height of the radiant and for the limiting magnitude this is a zenithal hourly rate of 86."
    )
    document.add_heading("The fireball of 23:04", level=2)
    document.add_paragraph(
        "At 23:04 a fireball of magnitude -8 crossed Cassiopeia. Its train stayed visible for forty seconds to the naked eye and "
        "for three minutes in binoculars. A second camera at Halden gives a height of 78 kilometres for the end of the trail."
    )
    document.add_heading("Where they come from", level=2)
    document.add_paragraph(
        "The Perseids are dust of comet 109P/Swift-Tuttle, which returns every 133 years and was last here in 1992. The grains meet "
        "the atmosphere at 59 kilometres per second."
    )
    document.save(str(LIBRARY / "observatory/observing/logs/2024/perseids-report.docx"))


def write_fermentation() -> None:
    document = docx.Document()
    document.core_properties.title = "Fermenting vegetables"
    document.core_properties.author = "Tomás Oyelaran"
    document.add_heading("Fermenting vegetables", level=1)
    document.add_paragraph(
        "Lactic acid bacteria live on every fresh leaf. Salt and the lack of air give them the advantage; their acid does the rest."
    )
    document.add_heading("Sauerkraut", level=2)
    document.add_paragraph(
        "Use 20 grams of salt per kilogram of shredded cabbage, that is two percent. Knead until the juice runs, press into the crock, "
        "weigh down so that the brine stands above the cabbage. Keep at 18 to 20 °C; it is ready after four to six weeks."
    )
    document.add_heading("Kimchi", level=2)
    document.add_paragraph(
        "Napa cabbage is salted for two hours in a brine of ten percent and rinsed three times. The paste is made of gochugaru, garlic, "
        "ginger, fish sauce and a porridge of glutinous rice. Two days at room temperature, then the refrigerator."
    )
    document.add_heading("Is it safe?", level=2)
    document.add_paragraph(
        "A ferment is safe when its pH has fallen below 4.6; ours usually reach 3.5. A white film is kahm yeast: harmless, skim it off. "
        "Furry mould in any colour means that the whole jar is thrown away."
    )
    document.save(str(LIBRARY / "kitchen/techniques/fermentation.docx"))


def write_slides(path: str, title: str, subtitle: str, slides: list[tuple[str, list[str], str]]) -> None:
    deck = Presentation()
    deck.core_properties.title = title
    opening = deck.slides.add_slide(deck.slide_layouts[0])
    opening.shapes.title.text, opening.placeholders[1].text = title, subtitle
    for heading, points, notes in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = heading
        slide.placeholders[1].text = "\n".join(points)
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    deck.save(str(LIBRARY / path))


LIGHT_POLLUTION = [
    ("What we lose", ["From a dark site about 4,500 stars are visible to the naked eye", "From the centre of Halden: about 60"], ""),
    (
        "The Bortle scale",
        [
            "Class 1: the Milky Way casts shadows",
            "Class 4: the Milky Way shows structure only overhead",
            "Class 9: only planets and a few stars",
        ],
        "Pass round the two photographs taken from the same hill in 1989 and 2022.",
    ),
    (
        "Moths, birds, people",
        ["A street lamp kills about 150 insects in a summer night", "Light after dusk suppresses the hormone melatonin"],
        "",
    ),
    (
        "What helps",
        ["Shield every lamp: no light above the horizontal", "Warm light, below 2,700 kelvin", "Switch off between midnight and five"],
        "Halden saved 38,000 euros in the first year after it fitted shields to its street lamps.",
    ),
]

PICKLES = [
    (
        "Quick pickles",
        ["Equal parts of vinegar and water", "Per litre: 60 g sugar, 30 g salt", "Pour over hot, eat after 24 hours"],
        "Let everybody smell the coriander seed before and after toasting.",
    ),
    ("The vinegar", ["It must have at least five percent acid", "Never dilute it below one half: the pH would rise above 4.6"], ""),
    (
        "Crisp cucumbers",
        [
            "Cut off the blossom end: its enzymes make them soft",
            "A vine leaf or an oak leaf in the jar gives tannin",
            "Ice water for two hours first",
        ],
        "",
    ),
    (
        "Canning times",
        ["Half-litre jars: ten minutes in boiling water", "Above 300 metres: fifteen minutes"],
        "The school lies at 590 metres.",
    ),
]


def write_messier_targets() -> None:
    book = Workbook()
    targets = book.active
    targets.title = "Targets"
    targets.append(["Object", "Name", "Type", "Constellation", "Magnitude", "Distance (light years)", "Best month"])
    for row in (
        ["M1", "Crab Nebula", "supernova remnant", "Taurus", 8.4, 6500, "January"],
        ["M13", "Hercules Cluster", "globular cluster", "Hercules", 5.8, 22200, "July"],
        ["M27", "Dumbbell Nebula", "planetary nebula", "Vulpecula", 7.5, 1360, "September"],
        ["M31", "Andromeda Galaxy", "spiral galaxy", "Andromeda", 3.4, 2540000, "November"],
        ["M42", "Orion Nebula", "emission nebula", "Orion", 4.0, 1344, "January"],
        ["M45", "Pleiades", "open cluster", "Taurus", 1.6, 444, "December"],
        ["M51", "Whirlpool Galaxy", "spiral galaxy", "Canes Venatici", 8.4, 31000000, "May"],
        ["M57", "Ring Nebula", "planetary nebula", "Lyra", 8.8, 2570, "August"],
        ["M104", "Sombrero Galaxy", "spiral galaxy", "Virgo", 8.0, 31100000, "May"],
    ):
        targets.append(row)
    eyepieces = book.create_sheet("Eyepieces")
    eyepieces.append(["Eyepiece", "Focal length (mm)", "Magnification with Greta", "Apparent field (degrees)", "Drawer"])
    for row in (
        ["Panorama", 41, 95, 68, "A1"],
        ["Plössl", 26, 150, 52, "A2"],
        ["Wide angle", 17, 230, 82, "A3"],
        ["Ortho", 10, 391, 42, "B1"],
    ):
        eyepieces.append(row)
    for sheet in book:
        for cell in sheet[1]:
            cell.font = Font(bold=True)
    book.save(LIBRARY / "observatory/observing/messier-targets.xlsx")


def write_inventory() -> None:
    book = Workbook()
    stock = book.active
    stock.title = "Stock"
    stock.append(["Shelf", "Item", "Supplier", "Kilograms", "Price per kg (EUR)", "Value (EUR)", "Best before"])
    for row in (
        ["F1", "Wheat flour type 550", "Mill at Varnes", 75, 0.95, "2025-09-30"],
        ["F1", "Whole rye flour", "Mill at Varnes", 40, 1.1, "2025-08-31"],
        ["F2", "Basmati rice", "Kaveri Imports", 30, 2.4, "2026-05-31"],
        ["G1", "Green cardamom", "Kaveri Imports", 1.5, 64, "2026-01-31"],
        ["G1", "Saffron threads", "Hermanos Duque", 0.04, 5200, "2026-12-31"],
        ["K2", "Kombu from Rishiri", "Nomura Trading", 3, 78, "2027-03-31"],
        ["K2", "Katsuobushi flakes", "Nomura Trading", 2, 55, "2025-11-30"],
        ["S1", "Sea salt, coarse", "Salines du Lac", 50, 0.6, "none"],
    ):
        stock.append([*row[:5], round(row[3] * row[4], 2), row[5]])
    suppliers = book.create_sheet("Suppliers")
    suppliers.append(["Supplier", "Delivers on", "Minimum order (EUR)", "Contact"])
    suppliers.append(["Mill at Varnes", "Tuesday", 60, "Agnes Quill"])
    suppliers.append(["Kaveri Imports", "first Thursday of the month", 150, "Dev Raman"])
    suppliers.append(["Nomura Trading", "every second Wednesday", 200, "Emi Nomura"])
    book.save(LIBRARY / "kitchen/pantry/inventory.xlsx")


def write_sign(path: str, lines: list[str]) -> None:
    image = Image.new("L", (1100, 120 + 70 * len(lines)), 246)
    draw = ImageDraw.Draw(image)
    draw.rectangle((12, 12, image.width - 13, image.height - 13), outline=60, width=4)
    font = ImageFont.truetype(FONT, 40)
    for number, line in enumerate(lines):
        draw.text((70, 60 + 70 * number), line, font=font, fill=20)
    image.save(LIBRARY / path, optimize=True)


def write_damaged_logbook() -> None:
    """The first part of a sound file, as an interrupted copy leaves it."""
    path = LIBRARY / "observatory/archive/logbook-1998-damaged.docx"
    document = docx.Document()
    document.add_heading("Logbook of the year 1998", level=1)
    for night in range(1, 60):
        document.add_paragraph(f"Night {night}: seeing {night % 5 + 1} of 5, observed until {22 + night % 3}:30.")
    document.save(str(path))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 3 // 5])


if __name__ == "__main__":
    write_pdf("observatory/instruments/cameras/ccd-calibration.pdf", "Calibrating the CCD camera", CCD_CALIBRATION)
    write_pdf("observatory/instruments/telescopes/dome-manual.pdf", "The dome: short manual", DOME_MANUAL)
    write_pdf("kitchen/techniques/food-safety.pdf", "Food safety in the teaching kitchen", FOOD_SAFETY)
    write_laser_safety()
    write_perseids_report()
    write_fermentation()
    write_slides(
        "observatory/outreach/talks/light-pollution.pptx", "Light pollution", "A talk of forty minutes for schools", LIGHT_POLLUTION
    )
    write_slides("kitchen/preserving/pickles-workshop.pptx", "Pickles", "Workshop for beginners, three hours", PICKLES)
    write_messier_targets()
    write_inventory()
    write_sign(
        "observatory/outreach/signs/sundial-plaque.png",
        [
            "THE SUNDIAL",
            "Given in 1931 by the clockmaker Leopold Haas.",
            "It shows true local time, which is",
            "22 minutes behind the clock.",
            "Around 3 November it gains 16 minutes.",
        ],
    )
    write_sign(
        "kitchen/preserving/jam-label.png",
        ["QUINCE JELLY", "1 kg quinces, 750 g sugar, 2 lemons", "Cooked on 14 October", "Sets at 104 degrees"],
    )
    write_damaged_logbook()
