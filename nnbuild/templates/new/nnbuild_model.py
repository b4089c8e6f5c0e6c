# Takes nnbuild in. It is asked where its script lies, so that this file is the same on every machine.
import subprocess

Import("env")
script = subprocess.run(["nnbuild", "--platformio-script"], capture_output=True, text=True, check=True).stdout.strip()
env.SConscript(script, exports="env")
