"""The soak: the real job is fed, killed and disturbed for as long as one likes, and then nothing may differ.

python -m tests.soak --minutes 20 --seed 7
"""
