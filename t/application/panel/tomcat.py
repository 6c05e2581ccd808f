# Packages: tomcat10 python3. Needs: java, python3, /usr/share/tomcat10/bin/bootstrap.jar. Options: --save-files
# A page that is compiled at the first request, sessions, and connections that stay open.
import os
import subprocess

from local_http import connect, get
from local_server import ask_until_go, end, start

port, here, home = int(os.environ["PORT"]), os.getcwd(), "/usr/share/tomcat10"
for name in ("conf", "webapps/ROOT", "work", "temp", "logs"):
    os.makedirs(name)
open("conf/server.xml", "w").write(f"""<Server port="-1"><Service name="Catalina">
<Connector port="{port}" address="127.0.0.1" protocol="HTTP/1.1" connectionTimeout="2000000" maxKeepAliveRequests="-1"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps" autoDeploy="false"/></Engine>
</Service></Server>""")
subprocess.run(["cp", f"{home}/etc/web.xml", "conf"], check=True)
open("webapps/ROOT/count.jsp", "w").write("""<%@ page import="java.util.*" %><%
synchronized (application) {
    TreeMap<String, Integer> all = (TreeMap<String, Integer>) application.getAttribute("all");
    if (all == null) application.setAttribute("all", all = new TreeMap<>());
    String key = request.getParameter("key");
    if (key != null) all.merge(key, 1, Integer::sum);
    Integer n = (Integer) session.getAttribute("n");
    session.setAttribute("n", n == null ? 1 : n + 1);
    out.print(session.getAttribute("n") + " " + (key == null ? all.toString() : "" + all.get(key)));
} %>""")
server = start("java", "-Xmx200m", "-XX:+PerfDisableSharedMem", f"-Dcatalina.home={home}", f"-Dcatalina.base={here}", f"-Djava.io.tmpdir={here}/temp",
               "-cp", f"{home}/bin/bootstrap.jar:{home}/bin/tomcat-juli.jar", "org.apache.catalina.startup.Bootstrap", "start")
c = connect(port, server)
c.request("GET", "/count.jsp?key=first")
answer = c.getresponse()
print(answer.status, answer.read())
cookie = answer.getheader("Set-Cookie").split(";")[0]
turn = 1


def ask():
    global turn
    turn += 1
    c.request("GET", "/count.jsp?key=k", headers={"Cookie": cookie})
    assert c.getresponse().read() == b"%d %d" % (turn, turn - 1)


ask()
ask_until_go(ask)
c.request("GET", "/count.jsp?key=last", headers={"Cookie": cookie})
print(c.getresponse().read() == b"%d 1" % (turn + 1))
new = connect(port, server)
print(get(new, "/count.jsp").decode().replace(f"k={turn - 1}", "k=N"), get(new, "/none")[:20])
end(server)
