"""Questions for the demo model with what a right answer contains, and some that it must decline.

The clock of the tests stands at 2026-03-10 14:30 UTC, a Tuesday.
"""

from __future__ import annotations

ARITHMETIC = [
    ("what is 17 times 23 plus 4", "395"),
    ("12% of 80", "9.6"),
    ("square root of 2", "1.414213562"),
    ("(3+4)*2^5", "224"),
    ("What's seventeen multiplied by twenty-three?", "391"),
    ("Calculate 1000 divided by 8", "125"),
    ("how much is 15 percent of 240?", "36"),
    ("add 3 and 4", "7"),
    ("subtract 8 from 20", "12"),
    ("divide 144 by 12", "12"),
    ("the sum of 4, 5 and 6", "15"),
    ("What is the product of 6 and 7?", "42"),
    ("what's the difference between 100 and 58", "42"),
    ("2 to the power of 10", "1024"),
    ("12 squared", "144"),
    ("three cubed", "27"),
    ("half of 90", "45"),
    ("twice 21", "42"),
    ("what is 0.1 + 0.2?", "0.3"),
    ("7 factorial", "5040"),
    ("10 mod 3", "1"),
    ("one hundred and five minus six", "99"),
    ("Could you please work out 3 x 4?", "12"),
    ("2,500 * 4", "10000"),
    ("cube root of 27", "3"),
    ("-5 + 3", "-2"),
    ("How much is two million divided by four?", "500000"),
    ("minus four times five", "-20"),
    ("10 / 4 - 1", "1.5"),
    ("increase 80 by 10%", "88"),
    ("what do you get if you multiply 12 by 12", "144"),
    ("A dozen times three, please", "36"),
]

DATES = [
    ("how many days between 2026-01-05 and 24 December 2026", "353"),
    ("How many days are there from 1 January 2024 to 1 January 2025?", "366"),
    ("what weekday was 4 July 1999", "Sunday"),
    ("What day of the week is 2026-12-25?", "Friday"),
    ("On which day of the week did 20 July 1969 fall?", "Sunday"),
    ("what date is 90 days after 2026-03-01", "2026-05-30"),
    ("What is the date 10 days before March 5th, 2024?", "2024-02-24"),
    ("two weeks after 2026-03-01", "2026-03-15"),
    ("what day is today", "Tuesday"),
    ("what is today's date?", "2026-03-10"),
    ("what time is it in Tokyo", "23:30"),
    ("What's the time in New York?", "10:30"),
    ("current time", "14:30"),
    ("how many days until 24 December 2026?", "289"),
    ("how many days until Christmas?", "290"),
    ("what date will it be in 3 weeks", "2026-03-31"),
    ("days since 1 March 2026", "9"),
    ("What day will it be 100 days from now?", "2026-06-18"),
    ("was 29 February 2000 a Tuesday?", "Tuesday"),
]

TEXT = [
    ("how many letters in 'strawberry'", "10"),
    ("how many r's in strawberry", "3"),
    ("How many times does the letter s appear in mississippi?", "4"),
    ("How many words are in 'the quick brown fox'?", "4"),
    ("number of vowels in banana", "3"),
    ("reverse 'abc'", "cba"),
    ("Spell stressed backwards", "desserts"),
    ("uppercase hello world", "HELLO WORLD"),
    ('Make "QUIET" lower case', "quiet"),
    ("sort the words pear apple fig", "apple fig pear"),
    ("is 'level' a palindrome", "is a palindrome"),
    ("Is python a palindrome?", "is not a palindrome"),
    ("how long is the word 'onomatopoeia'", "12"),
    ('Count the characters in "hello there"', "11"),
    ("how many p are there in apple?", "2"),
    ("What is 'desserts' spelled backwards?", "stressed"),
]

UNITS = [
    ("convert 5 miles to km", "8.04672"),
    ("how many cups in 2 litres", "8.45"),
    ("100 F in C", "37.7"),
    ("3 hours in seconds", "10800"),
    ("How many feet are in a mile?", "5280"),
    ("what is 70 kg in pounds?", "154.3"),
    ("Change 20 degrees Celsius to Fahrenheit", "68"),
    ("how many minutes are in 2.5 days", "3600"),
    ("6 inches to centimetres", "15.24"),
    ("How many grams is 2 ounces?", "56.69"),
    ("0 kelvin in celsius", "-273.15"),
    ("60 mph in km/h", "96.56"),
    ("5 GB in MB", "5000"),
    ("how much is an acre in square metres", "4046"),
]

SEVERAL = [
    ("add 3 and 4, then multiply the result by 10", "70"),
    ("What is 2+2 and what weekday was 4 July 1999?", "Sunday"),
    ("convert 5 miles to km and 3 hours to seconds", "10800"),
    ("Reverse 'abc'. Then how many letters in 'hello'?", "5"),
    ("What is 6 times 7? Add 8 to it.", "50"),
    ("take 10, double it and subtract 5", "15"),
    ("What time is it in Tokyo and in London?", "23:30"),
]

DECLINED = [
    "who wrote Hamlet?",
    "What is the capital of France?",
    "Write me a poem about the sea",
    "How many people live in Berlin?",
    "Should I invest in gold?",
    "asdf qwer zxcv",
    "Translate 'good morning' into Spanish",
    "What is the meaning of life?",
    "how many days of rain did Oslo have in 2019",
    "and",
    "???",
    "Summarise the second world war in 3 sentences",
]
