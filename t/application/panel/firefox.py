# Packages: firefox-esr python3. Needs: firefox-esr python3. Options: --save-files
# With its processes in no namespaces of their own (MOZ_ASSUME_USER_NS).
import os

from local_browser import show

os.mkdir("profile")
show("firefox-esr", "--headless", "--no-remote", "--profile", "profile")
