# Packages: chromium python3. Needs: chromium python3. Options: --save-files
# Without its sandbox, as root has to start it.
from local_browser import show

show("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--user-data-dir=profile")
